"""Who runs something in a session right now, found without getting in anybody's way."""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from agent.sessions.store import SessionFolder, SessionLock
from agent.vocabulary.errors import SessionBusy
from tooling.contract.fast_dataclass import dataclass

_PROC = Path("/proc")


def lock_holder(folder: SessionFolder) -> int | None:
    """Return the process that holds a session, None when nobody does.

    Who held it last stays written in its lock, so a dead process is told from its number alone; only where that
    number lives is the lock itself tried.
    """
    try:
        fd = os.open(folder.lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        pid = _parse_pid(os.pread(fd, 32, 0))
        if pid is None or not _is_alive(pid) or not _is_locked(fd):
            return None
        return pid
    finally:
        os.close(fd)


def has_file_open(pid: int, path: Path) -> bool:
    """Say whether a process has a file open; where processes cannot be looked into, take it for granted."""
    files = _PROC / str(pid) / "fd"
    try:
        wanted = path.stat()
        return any(os.path.samestat(wanted, seen) for seen in map(_try_stat, files.iterdir()) if seen)
    except FileNotFoundError:
        return not _PROC.joinpath("self", "fd").exists() and path.exists()
    except OSError:
        return False


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _parse_pid(text: bytes) -> int | None:
    first = text.split()[:1]
    return int(first[0]) if first and first[0].isdigit() else None


def _try_stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


_POLL_S = 0.05
# A listing that looks whether somebody runs here holds the lock for a moment; that is nobody to give up for.
_GRACE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTimeout:
    """How long to wait for a session, None for ever, and who is told that it takes a while."""

    limit_s: float | None = 0.0
    on_wait: Callable[[str], None] = lambda message: None


def acquire_lock(folder: SessionFolder, patience: LockTimeout) -> SessionLock:
    """Return the lock of a session as soon as it is free, or raise SessionBusy when that takes too long."""
    start = time.monotonic()
    has_told = False
    while True:
        try:
            return SessionLock(folder)
        except SessionBusy as busy:
            waited = time.monotonic() - start
            if patience.limit_s is not None and waited >= max(patience.limit_s, _GRACE_S):
                raise
            if not has_told and waited >= _GRACE_S:
                patience.on_wait(f"{busy.message}; waiting for it to end")
                has_told = True
        # A lock has no wait with a time limit; a signal ends the sleep at once.
        time.sleep(_POLL_S)
