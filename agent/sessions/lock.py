"""Who runs something in a session right now, found without getting in anybody's way."""

import fcntl
import os
from pathlib import Path

from agent.sessions.store import SessionFolder

_PROCESSES = Path("/proc")


def holder_of(folder: SessionFolder) -> int | None:
    """Return the process that holds a session, None when nobody does.

    Who held it last stays written in its lock, so a dead process is told from its number alone; only where that
    number lives is the lock itself tried.
    """
    try:
        fd = os.open(folder.lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        pid = _number(os.pread(fd, 32, 0))
        if pid is None or not _is_alive(pid) or not _is_locked(fd):
            return None
        return pid
    finally:
        os.close(fd)


def has_open(pid: int, path: Path) -> bool:
    """Say whether a process has a file open; where processes cannot be looked into, take it for granted."""
    files = _PROCESSES / str(pid) / "fd"
    try:
        wanted = path.stat()
        return any(os.path.samestat(wanted, seen) for seen in map(_stat_of, files.iterdir()) if seen)
    except FileNotFoundError:
        return not _PROCESSES.joinpath("self", "fd").exists() and path.exists()
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


def _number(text: bytes) -> int | None:
    first = text.split()[:1]
    return int(first[0]) if first and first[0].isdigit() else None


def _stat_of(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
