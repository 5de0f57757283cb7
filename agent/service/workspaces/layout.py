"""Layout of workspaces: `user_<id>/session_<id>/` for the files of a session, and a private folder next to it."""

import json
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias, cast

from agent.sessions.store import SessionFolder, SessionLock
from agent.sessions.upkeep.gc import REMOVED_PREFIX, delete_tree
from agent.vocabulary.errors import InputError, SessionBusy
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.atomic_write import write_atomic

ContainerMode: TypeAlias = Literal["ephemeral", "persistent"]
MODES: tuple[ContainerMode, ...] = ("ephemeral", "persistent")
# Folders of every workspace. `.git` comes with a repository.
FOLDERS = ("input", "output", ".skills", ".mcp-servers")
_ID = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_USER, _SESSION = "user_", "session_"
_PRIVATE = ".sessions"
_RECORD = "workspace.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The folders of one session of one user.

    Tasks work in `path`. `data` is the data folder of the executor: event log, step results, memory. Both are
    mounted into containers; the lock and the record next to `data` are not.
    """

    user_id: str
    session_id: str
    root: Path

    @property
    def path(self) -> Path:
        return self.root / f"{_USER}{self.user_id}" / f"{_SESSION}{self.session_id}"

    @property
    def private(self) -> Path:
        """The folder of the session's files outside of its workspace."""
        return self.path.parent / _PRIVATE / self.path.name

    @property
    def data(self) -> Path:
        return self.private / "data"

    @property
    def record(self) -> Path:
        return self.private / _RECORD

    @property
    def session(self) -> SessionFolder:
        """The session in the executor's data folder; it exists after the first task."""
        return SessionFolder(id=self.session_id, root=self.data / "sessions" / self.session_id)

    @property
    def mode(self) -> ContainerMode:
        """The container mode of the session; persistent without a record, so that nothing is deleted by mistake."""
        try:
            found = json.loads(self.record.read_text("utf-8")).get("container_mode")
        except (OSError, ValueError, AttributeError):
            return "persistent"
        return cast(ContainerMode, found) if found in MODES else "persistent"

    @property
    def last_used(self) -> float:
        """Time at which a task last started or ended in it."""
        try:
            return self.record.stat().st_mtime
        except OSError:
            return self.path.stat().st_mtime


class WorkspaceLock:
    """Held while a container works in a workspace, and while it is archived or removed.

    A container may outlive the process that held its lock, so the lock of its session is checked, too.
    """

    def __init__(self, workspace: Workspace) -> None:
        workspace.private.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._own = SessionLock(SessionFolder(id=workspace.session_id, root=workspace.private))
        self._of_run: SessionLock | None = None
        try:
            root = workspace.session.root
            # The container owns the data folder: anything in it may be a link to anywhere.
            if root.is_dir() and root.resolve() == workspace.data.resolve() / root.relative_to(workspace.data):
                self._of_run = SessionLock(workspace.session)
        except BaseException:
            self._own.release()
            raise

    def admit_run(self) -> None:
        """Let a run in this workspace take the session's lock, and keep other processes out."""
        if self._of_run is not None:
            self._of_run.release()
            self._of_run = None

    def release(self) -> None:
        self.admit_run()
        self._own.release()


class WorkspaceStore:
    """Creates, finds and removes workspaces below one folder; `owner` is the user and group of containers."""

    def __init__(self, root: Path, owner: tuple[int, int] | None = None) -> None:
        self.root = root
        self._owner = owner

    @property
    def archives(self) -> Path:
        """The folder of archives on this machine."""
        return self.root / ".archives"

    @property
    def pool(self) -> Path:
        """The folder of the pool of containers."""
        return self.root / ".pool"

    def place(self, user_id: str, session_id: str) -> Workspace:
        """Return a workspace, existing or not. Raises InputError for ids that are not plain names."""
        for kind, name in (("user", user_id), ("session", session_id)):
            if not _ID.fullmatch(name):
                hint = "use letters, digits and . _ @ + -, at most 64, beginning with a letter or digit"
                raise InputError(f"{name!r} is not a {kind} id", hint)
        return Workspace(user_id=user_id, session_id=session_id, root=self.root)

    def find(self, user_id: str, session_id: str) -> Workspace:
        """Return an existing workspace. Raises InputError if there is none."""
        found = self.place(user_id, session_id)
        if not found.path.is_dir() or found.path.is_symlink():
            hint = "`agent workspaces list` shows them"
            raise InputError(f"there is no workspace of session {session_id} of user {user_id}", hint)
        return found

    def open(self, user_id: str, session_id: str, mode: ContainerMode = "ephemeral") -> Workspace:
        """Return a workspace with all its folders, and record its mode."""
        workspace = self.place(user_id, session_id)
        for folder in (workspace.path.parent, workspace.private):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.fill(workspace.path, workspace.data)
        record = {"user_id": user_id, "session_id": session_id, "container_mode": mode}
        write_atomic(workspace.record, json.dumps(record).encode(), is_synced=False)
        return workspace

    def fill(self, path: Path, data: Path) -> None:
        """Create the folders of a workspace, owned by the user of containers."""
        for folder in (path, data, *(path / name for name in FOLDERS)):
            # A task may have replaced a folder with anything.
            if not os.path.lexists(folder):
                folder.mkdir(mode=0o700)
                if self._owner:
                    os.chown(folder, *self._owner, follow_symlinks=False)

    def all(self) -> Iterator[Workspace]:
        """Yield all workspaces, by user and session."""
        for user in _folders(self.root, _USER):
            for session in _folders(user, _SESSION):
                user_id, session_id = user.name.removeprefix(_USER), session.name.removeprefix(_SESSION)
                if _ID.fullmatch(user_id) and _ID.fullmatch(session_id):
                    yield Workspace(user_id=user_id, session_id=session_id, root=self.root)

    def remove(self, workspace: Workspace, lock: WorkspaceLock) -> None:
        """Remove a workspace whose lock is held, and release it."""
        trash = workspace.path.with_name(f"{REMOVED_PREFIX}{workspace.path.name}.{secrets.token_hex(4)}")
        try:
            trash.mkdir(mode=0o700)
            # After the rename it cannot be found; deleting may take long.
            workspace.path.rename(trash / "workspace")
            workspace.private.rename(trash / "private")
        finally:
            lock.release()
        delete_tree(trash)
        for folder in (workspace.private.parent, workspace.path.parent):
            _remove_if_empty(folder)

    def leftovers(self) -> Iterator[Path]:
        """Yield the remains of workspaces whose removal was interrupted."""
        for user in _folders(self.root, _USER):
            yield from _folders(user, REMOVED_PREFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceSize:
    """Number and total size of a workspace's files."""

    files: int
    size_bytes: int


def measure(folder: Path, *, ignores_dot_files: bool) -> WorkspaceSize:
    """Return the size of a workspace; symlinks are not followed."""
    files = size = 0
    for path, folders, names in os.walk(folder):
        if ignores_dot_files:
            folders[:] = [name for name in folders if not name.startswith(".")]
            names = [name for name in names if not name.startswith(".")]
        for name in names:
            try:
                size += Path(path, name).lstat().st_size
            except OSError:
                continue
            files += 1
    return WorkspaceSize(files=files, size_bytes=size)


def is_running(workspace: Workspace) -> bool:
    """Return whether a container or a run uses a workspace now."""
    try:
        lock = WorkspaceLock(workspace)
    except (SessionBusy, OSError):
        return True
    lock.release()
    return False


def touch(workspace: Workspace) -> None:
    """Record that a task has started or ended in a workspace."""
    if workspace.record.exists():
        os.utime(workspace.record, (time.time(), time.time()))


def _folders(parent: Path, prefix: str) -> Iterator[Path]:
    try:
        found = sorted(path for path in parent.iterdir() if path.name.startswith(prefix))
    except OSError:
        return
    yield from (path for path in found if path.is_dir() and not path.is_symlink())


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return
