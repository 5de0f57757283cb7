"""The folder of a pool: locks of its managers, folders of its containers, and workspaces of warm containers.

The leftovers of a killed manager can be found: a manager holds a lock while it runs, and a folder without a container
is unused.
"""

import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from agent.config.token_file import load_or_create_token
from agent.service.containers.executor_container import ContainerFolders
from agent.service.workspaces.layout import Workspace, WorkspaceStore
from agent.sessions.upkeep.gc import delete_tree
from agent.vocabulary.errors import AgentError
from tooling.files.atomic_write import write_atomic

ENV_FILE = "environment"
TOKEN_VARIABLE = "INTERNAL_API_TOKEN"
_CLAIM, _OLD = "claim.json", "old-"
_PARTS = ("workspace", "data")


class PoolFolder:
    """The folder as one manager uses it; `close` or the kernel releases its lock."""

    def __init__(self, store: WorkspaceStore, owner: tuple[int, int] | None) -> None:
        self._store = store
        self._owner = owner
        for folder in (store.root, store.pool, self._managers, self._containers):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._secret = load_or_create_token(store.pool / "secret")
        self.manager = secrets.token_hex(8)
        self._lock = _try_lock(self._managers / self.manager, os.O_CREAT)
        self._creation = os.open(store.pool / "creation.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @property
    def _managers(self) -> Path:
        return self._store.pool / "managers"

    @property
    def _containers(self) -> Path:
        return self._store.pool / "containers"

    def close(self) -> None:
        """Release the lock; containers of this manager that still run have no manager afterwards."""
        if self._lock is not None:
            (self._managers / self.manager).unlink(missing_ok=True)
            os.close(self._lock)
            os.close(self._creation)
            self._lock = None

    def is_alive(self, manager: str) -> bool:
        """Return whether a manager is running; its lock file is removed if not."""
        path = self._managers / manager
        if "/" in manager or not path.is_file():
            return False
        lock = _try_lock(path)
        if lock is None:
            return True
        path.unlink(missing_ok=True)
        os.close(lock)
        return False

    def try_lock_creation(self) -> bool:
        """Keep other managers of this pool from creating containers; False if one of them holds the lock."""
        try:
            fcntl.flock(self._creation, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def unlock_creation(self) -> None:
        """Let other managers create containers."""
        fcntl.flock(self._creation, fcntl.LOCK_UN)

    def token(self, container_id: str) -> str:
        """Return the token of a container; every manager of this pool derives the same one."""
        return hmac.new(self._secret.encode(), container_id.encode(), hashlib.sha256).hexdigest()

    def folders(self, container_id: str, workspace: Workspace | None) -> ContainerFolders:
        """Create the folders of a container; without a workspace it gets an empty one."""
        own = self._containers / container_id
        own.mkdir(mode=0o700)
        run, parts = own / "run", {name: own / name for name in _PARTS}
        for folder in (run, *(() if workspace else parts.values())):
            folder.mkdir(mode=0o700)
            self._give(folder)
        if workspace:
            return ContainerFolders(workspace=workspace.path, data=workspace.data, run=run)
        return ContainerFolders(run=run, **parts)

    def write_secrets(self, container_id: str, variables: Mapping[str, str]) -> None:
        """Write the secrets and the token that the container reads at its start; call `remove_secrets` afterwards."""
        given = {**variables, TOKEN_VARIABLE: self.token(container_id)}
        for name, value in given.items():
            if not value.isprintable() or "'" in value:
                raise AgentError(f"the value of {name} cannot be passed to a container")
        path = self.run(container_id) / ENV_FILE
        write_atomic(path, "".join(f"{name}='{value}'\n" for name, value in given.items()).encode(), is_synced=False)
        self._give(path)

    def remove_secrets(self, container_id: str) -> None:
        """Delete the secrets after the container has read them."""
        (self.run(container_id) / ENV_FILE).unlink(missing_ok=True)

    def run(self, container_id: str) -> Path:
        """Return the folder with the start-up files and the callback socket of a container."""
        return self._containers / container_id / "run"

    def claim(self, container_id: str, workspace: Workspace) -> None:
        """Assign the empty workspace of a warm container to a session, with all files of the session.

        The folder itself is renamed, so the container sees it at once. After a crash in between, `remove` completes it.
        """
        own = self._containers / container_id
        claim = {"user_id": workspace.user_id, "session_id": workspace.session_id}
        write_atomic(own / _CLAIM, json.dumps(claim).encode())
        for name, target in zip(_PARTS, (workspace.path, workspace.data), strict=True):
            target.rename(own / f"{_OLD}{name}")
            (own / name).rename(target)
        self._complete_claim(own)

    def ids(self) -> list[str]:
        """Return the ids of the containers that have a folder here, running or not."""
        return sorted(path.name for path in self._containers.iterdir() if not path.is_symlink())

    def remove(self, container_id: str) -> None:
        """Delete the folder of a removed container; files of a session in it are moved back to the session."""
        own = self._containers / container_id
        if own.is_dir():
            self._complete_claim(own)
            delete_tree(own)

    def _complete_claim(self, own: Path) -> None:
        try:
            claim = json.loads((own / _CLAIM).read_text("utf-8"))
            workspace = self._store.place(claim["user_id"], claim["session_id"])
        except FileNotFoundError:
            return
        for name, target in zip(_PARTS, (workspace.path, workspace.data), strict=True):
            old = own / f"{_OLD}{name}"
            if not old.is_dir():
                continue
            if not target.exists():
                old.rename(target)
                continue
            for entry in old.iterdir():
                entry.rename(target / entry.name)
            old.rmdir()
        (own / _CLAIM).unlink()

    def _give(self, path: Path) -> None:
        if self._owner:
            os.chown(path, *self._owner, follow_symlinks=False)


def _try_lock(path: Path, flags: int = 0) -> int | None:
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd
