"""Removes sessions: one by id, the expired ones, and leftovers of crashes."""

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
from tooling.files.open_regular import NotRegularFile
from tooling.files.temp_dir import stale_dirs

# Starts with a dot, so that a partly deleted session is never listed.
REMOVED_PREFIX = ".removed-"
STOP_TIMEOUT_S = 15.0
_POLL_S = 0.05
# Longer than any process needs between creating a temporary file and renaming it.
_ORPHANED_AFTER_S = 3600


def remove(store: SessionStore, folder: SessionFolder, *, stop_timeout_s: float | None = STOP_TIMEOUT_S) -> None:
    """Remove a session, stopping its run first; with `stop_timeout_s=None` nothing is stopped.

    Raises SessionBusy if the session is still in use.
    """
    if folder.root.is_symlink():
        raise InputError(f"session {folder.id} is a symlink to {folder.root.readlink()}", "remove the symlink itself")
    lock = _lock(folder, stop_timeout_s)
    trash = store.root / f"{REMOVED_PREFIX}{folder.id}.{secrets.token_hex(4)}"
    try:
        # Deleting may take long; after the rename no other process finds the session.
        folder.root.rename(trash)
    finally:
        if lock:
            lock.release()
    delete_tree(trash)


def _lock(folder: SessionFolder, stop_timeout_s: float | None) -> SessionLock | None:
    try:
        return SessionLock(folder) if stop_timeout_s is None else _stop_and_lock(folder, stop_timeout_s)
    except NotRegularFile:
        # No process can work in a session with such a lock file.
        return None


def delete_tree(tree: Path) -> None:
    """Delete a folder and its contents, read-only folders included; symlinks are not followed."""
    try:
        shutil.rmtree(tree)
    except PermissionError:
        _make_writable(tree)
        try:
            shutil.rmtree(tree)
        except OSError as error:
            raise AgentError(f"{tree} could not be deleted: {error.strerror}") from error
    except FileNotFoundError:
        # Another process is deleting the same tree.
        shutil.rmtree(tree, ignore_errors=True)


def _stop_and_lock(folder: SessionFolder, timeout_s: float) -> SessionLock:
    """Return the session's lock, sending SIGTERM to a process that holds it."""
    deadline = time.monotonic() + timeout_s
    signalled: set[int] = set()
    while True:
        try:
            return SessionLock(folder)
        except SessionBusy as busy:
            pid = lock_holder(folder)
            if pid is not None and pid not in signalled and _can_signal(pid, folder):
                os.kill(pid, signal.SIGTERM)
                signalled.add(pid)
            if time.monotonic() > deadline:
                raise SessionBusy(did_not_stop(busy.message), "stop that process, then try again") from busy
        time.sleep(_POLL_S)


def did_not_stop(busy: str) -> str:
    return f"{busy}, and did not stop"


def _can_signal(pid: int, folder: SessionFolder) -> bool:
    """Whether another process certainly holds the session; a pid may have been reused."""
    return pid != os.getpid() and has_file_open(pid, folder.lock)


def _make_writable(tree: Path) -> None:
    """Make every folder below writable for its owner; some tools leave read-only folders."""
    for path, names, _ in os.walk(tree):
        for name in names:
            folder = Path(path, name)
            if not folder.is_symlink():
                folder.chmod(0o700)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredSession:
    """A session that may be removed, with its last modification and its size."""

    folder: SessionFolder
    modified_at: float
    size_bytes: int


def find_expired(store: SessionStore, *, older_than_s: float | None, keep: int) -> list[ExpiredSession]:
    """Return idle sessions older than `older_than_s`, except the newest `keep`; oldest first."""
    limit = None if older_than_s is None else time.time() - older_than_s
    expired = [entry for entry in newest_sessions(store)[keep:] if limit is None or entry.modified_at < limit]
    folders = [(store.folder_for(entry.id), entry.modified_at) for entry in reversed(expired)]
    return [
        ExpiredSession(folder=folder, modified_at=at, size_bytes=tree_size(folder.root))
        for folder, at in folders
        if not folder.root.is_symlink() and lock_holder(folder) is None
    ]


def remove_if_unused(store: SessionStore, expired: ExpiredSession) -> bool:
    """Remove an expired session unless it has been used since; return whether it was removed."""
    try:
        is_unused = expired.folder.events.stat().st_mtime <= expired.modified_at
    except OSError:
        is_unused = expired.folder.root.exists()
    if not is_unused or lock_holder(expired.folder) is not None:
        return False
    try:
        remove(store, expired.folder, stop_timeout_s=None)
    except SessionBusy:
        return False
    return True


def find_orphans(store: SessionStore) -> list[Path]:
    """Return temporary files and folders that dead processes left behind."""
    found = [*_stale_temporaries(store.root), *stale_dirs()]
    for folder in store.all():
        if lock_holder(folder) is None:
            found += [*_stale_temporaries(folder.root), *_stale_temporaries(folder.steps)]
    return found


def delete_orphan(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        delete_tree(path)
    else:
        path.unlink(missing_ok=True)


def tree_size(tree: Path) -> int:
    """Return the total size of the files in a folder, not counting symlinks."""
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
