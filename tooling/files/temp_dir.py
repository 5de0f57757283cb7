"""Temporary directories: locked while in use, and removed by a later process after a crash."""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from types import TracebackType

_PREFIX = "windlass-tmp-"
# A matching name alone is no reason to delete a directory.
_MARKER = ".windlass-temporary"
# What 0.1 left after a crash, without a lock: only its age tells that nobody uses it.
_OLD_PREFIXES = ("windlass-bait-", "windlass-box-")
_OLD_AFTER_S = 7 * 86_400
# A process that creates directories by mistake must not make every later start wait.
_MAX_REMOVED = 200
_TRIES = 100


class TempDir:
    """A private directory, removed on `remove`, on leaving the context, or by a later process after a crash."""

    _lock: int | None

    def __init__(self) -> None:
        remove_stale()
        path, self._lock = _new_dir()
        (path / _MARKER).touch(mode=0o600)
        self.path = path / "content"
        self.path.mkdir(mode=0o700)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Delete the directory and everything in it; calling it again does nothing."""
        lock, self._lock = self._lock, None
        if lock is not None:
            shutil.rmtree(self.path.parent, ignore_errors=True)
            os.close(lock)


def _new_dir() -> tuple[Path, int]:
    """Create a directory and lock it; what keeps it from being locked, such as too few descriptors, is an error."""
    for _ in range(_TRIES):
        path = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        try:
            lock = _lock(path)
        except OSError:
            path.rmdir()
            raise
        # Another process may consider the directory stale before it is locked.
        if lock is not None and path.exists():
            return path, lock
    raise OSError(errno.EBUSY, "other processes keep removing it", str(path))


@cache
def remove_stale() -> None:
    """Delete directories left by dead processes, once per process, and not so many that the user waits."""
    for path in islice(stale_dirs(), _MAX_REMOVED):
        shutil.rmtree(path, ignore_errors=True)


def stale_dirs() -> Iterator[Path]:
    """Yield this user's temporary directories that no process has locked."""
    yield from _old_dirs()
    for path in _dirs_named(_PREFIX):
        with contextlib.suppress(OSError):
            is_ours = path.lstat().st_uid == os.getuid() and _is_marked(path)
            if is_ours and (lock := _lock(path)) is not None:
                yield path
                os.close(lock)


def _old_dirs() -> Iterator[Path]:
    for prefix in _OLD_PREFIXES:
        for path in sorted(_dirs_named(prefix)):
            with contextlib.suppress(OSError):
                status = path.lstat()
                is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
                if is_ours and time.time() - max(status.st_mtime, status.st_ctime) > _OLD_AFTER_S:
                    yield path


def _dirs_named(prefix: str) -> Iterator[Path]:
    try:
        entries = os.scandir(tempfile.gettempdir())
    except OSError:
        return
    with entries:
        yield from (Path(entry.path) for entry in entries if entry.name.startswith(prefix))


def _is_marked(path: Path) -> bool:
    """Whether a directory was created here; an empty one may be left by a crash before its marker was written."""
    names = {entry.name for entry in path.iterdir()}
    return _MARKER in names or not names


def _lock(path: Path) -> int | None:
    """Lock a directory; None if another process has locked or removed it.

    The kernel releases the lock when the process ends for any reason.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
