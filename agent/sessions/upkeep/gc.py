"""Which sessions have grown old, and what crashes left lying about."""

import os
import secrets
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from agent.sessions.lock import has_file_open, lock_holder
from agent.sessions.store import SessionFolder, SessionLock, SessionStore
from agent.sessions.upkeep.fork import PARTIAL_COPY_PREFIX
from agent.sessions.views.listing import newest_sessions
from agent.vocabulary.errors import AgentError, InputError, SessionBusy
from tooling.contract.fast_dataclass import dataclass
from tooling.files.atomic_write import TEMP_SUFFIX
from tooling.files.temp_dir import stale_dirs

# Begins with a dot, so that no reader of sessions takes what is left for one.
REMOVED_PREFIX = ".removed-"
STOP_TIMEOUT_S = 15.0
_POLL_S = 0.05


def remove(store: SessionStore, folder: SessionFolder, *, patience_s: float | None = STOP_TIMEOUT_S) -> None:
    """Remove a session; a run in it is asked to end, and one that does not in time keeps it, with None at once."""
    if folder.root.is_symlink():
        raise InputError(f"session {folder.id} is a link to {folder.root.readlink()}", "remove the link by hand")
    lock = SessionLock(folder) if patience_s is None else _stop_and_lock(folder, patience_s)
    grave = store.root / f"{REMOVED_PREFIX}{folder.id}.{secrets.token_hex(4)}"
    try:
        # From this moment on nobody finds it, however long the deleting takes.
        folder.root.rename(grave)
    finally:
        lock.release()
    delete_tree(grave)


def delete_tree(tree: Path) -> None:
    """Delete a folder with all that is in it, also what its owner may not write; links are not followed."""
    try:
        shutil.rmtree(tree)
    except PermissionError:
        _make_writable(tree)
        try:
            shutil.rmtree(tree)
        except OSError as error:
            raise AgentError(f"{tree} could not be deleted: {error.strerror}") from error
    except FileNotFoundError:
        # Somebody else clears away the same.
        shutil.rmtree(tree, ignore_errors=True)


def _stop_and_lock(folder: SessionFolder, patience_s: float) -> SessionLock:
    """Return the session's lock, after whoever holds it was asked to end and did."""
    deadline = time.monotonic() + patience_s
    asked: set[int] = set()
    while True:
        try:
            return SessionLock(folder)
        except SessionBusy as busy:
            pid = lock_holder(folder)
            if pid is not None and pid not in asked and _can_signal(pid, folder):
                os.kill(pid, signal.SIGTERM)
                asked.add(pid)
            if time.monotonic() > deadline:
                raise SessionBusy(f"{busy.message}, and did not end", "end that process, then try again") from busy
        time.sleep(_POLL_S)


def _can_signal(pid: int, folder: SessionFolder) -> bool:
    """Say whether this is surely the process that holds the session, and another one than ours."""
    return pid != os.getpid() and has_file_open(pid, folder.lock)


def _make_writable(tree: Path) -> None:
    """Let the owner into every folder below; some tools leave folders that nobody may write."""
    for path, names, _ in os.walk(tree):
        for name in names:
            below = Path(path, name)
            if not below.is_symlink():
                below.chmod(0o700)


# Nobody works this long on a file that is put in place whole.
_ORPHANED_AFTER_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredSession:
    """A session that may go: when something last happened in it, and what it takes."""

    folder: SessionFolder
    modified_at: float
    size_bytes: int


def find_expired(store: SessionStore, *, older_than_s: float | None, keep: int) -> list[ExpiredSession]:
    """Return the sessions beyond the newest `keep` that are older than that, the oldest first; none that is running."""
    limit = None if older_than_s is None else time.time() - older_than_s
    beyond = [one for one in newest_sessions(store)[keep:] if limit is None or one.modified_at < limit]
    folders = [(store.folder_for(one.id), one.modified_at) for one in reversed(beyond)]
    return [
        ExpiredSession(folder=folder, modified_at=at, size_bytes=tree_size(folder.root))
        for folder, at in folders
        if not folder.root.is_symlink() and lock_holder(folder) is None
    ]


def remove_if_unused(store: SessionStore, old: ExpiredSession) -> bool:
    """Remove an old session, unless something has begun in it meanwhile."""
    try:
        is_untouched = old.folder.events.stat().st_mtime <= old.modified_at
    except OSError:
        is_untouched = old.folder.root.exists()
    if not is_untouched or lock_holder(old.folder) is not None:
        return False
    try:
        remove(store, old.folder, patience_s=None)
    except SessionBusy:
        return False
    return True


def find_orphans(store: SessionStore) -> list[Path]:
    """Return half-made and half-removed things of processes that are long gone."""
    found = [*_stale_temporaries(store.root), *stale_dirs()]
    for folder in store.all():
        if lock_holder(folder) is None:
            found += [*_stale_temporaries(folder.root), *_stale_temporaries(folder.steps)]
    return found


def delete_orphan(path: Path) -> None:
    """Delete an orphan."""
    if path.is_dir() and not path.is_symlink():
        delete_tree(path)
    else:
        path.unlink(missing_ok=True)


def tree_size(tree: Path) -> int:
    """Return how many bytes the files of a folder hold; links count nothing."""
    try:
        with os.scandir(tree) as entries:
            return sum(_entry_size(entry) for entry in entries)
    except OSError:
        return 0


def _entry_size(entry: os.DirEntry[str]) -> int:
    try:
        if entry.is_dir(follow_symlinks=False):
            return tree_size(Path(entry.path))
        return entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else 0
    except OSError:
        return 0


def _stale_temporaries(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [Path(entry.path) for entry in entries if _is_temporary(entry.name)]
    except OSError:
        return
    yield from (path for path in found if _is_stale(path))


def _is_temporary(name: str) -> bool:
    return name.startswith((PARTIAL_COPY_PREFIX, REMOVED_PREFIX)) or name.endswith(TEMP_SUFFIX)


def _is_stale(path: Path) -> bool:
    try:
        return time.time() - path.lstat().st_mtime > _ORPHANED_AFTER_S
    except OSError:
        return False
