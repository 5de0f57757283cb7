"""Session locks: wait for one, and find the process that holds one."""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from agent.sessions.store import SessionFolder, SessionLock
from agent.vocabulary.errors import SessionBusy
from tooling.contract.fast_dataclass import dataclass
from tooling.files.open_regular import open_fd

_PROC = Path("/proc")
_POLL_S = 0.05
# A listing takes the lock for a moment to see whether it is held; that must not count as busy.
_GRACE_S = 0.1


def lock_holder(folder: SessionFolder) -> int | None:
    """Return the id of the process that holds a session's lock, or None.

    The lock file keeps the id of its last holder, so a dead holder is recognised without touching the lock; only if
    that process is alive is the lock itself tested.
    """
    try:
        fd = open_fd(folder.lock)
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
    """Whether a process has a file open; assumed to be true on systems without /proc."""
    files = _PROC / str(pid) / "fd"
    try:
        target = path.stat()
        return any(os.path.samestat(target, status) for status in map(_try_stat, files.iterdir()) if status)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTimeout:
    """Time to wait for a session's lock (None: forever); `on_wait` is called once if it is not free at once."""

    limit_s: float | None = 0.0
    on_wait: Callable[[str], None] = lambda message: None


def waiting_message(busy: str) -> str:
    return f"{busy}; waiting for it to finish"


def acquire_lock(folder: SessionFolder, timeout: LockTimeout) -> SessionLock:
    """Acquire a session's lock, waiting until it is free. Raises SessionBusy after the timeout."""
    start = time.monotonic()
    has_reported = False
    while True:
        try:
            return SessionLock(folder)
        except SessionBusy as busy:
            waited = time.monotonic() - start
            if timeout.limit_s is not None and waited >= max(timeout.limit_s, _GRACE_S):
                raise
            if not has_reported and waited >= _GRACE_S:
                timeout.on_wait(waiting_message(busy.message))
                has_reported = True
        # flock has no timeout, hence the polling; a signal interrupts the sleep at once.
        time.sleep(_POLL_S)
