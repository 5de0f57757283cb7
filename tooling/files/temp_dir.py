"""Temporary directories: locked while in use, and removed by a later process after a crash."""

import contextlib
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
# Whoever needs a directory waits for this.
_MAX_REMOVED = 50


class TempDir:
    """A private directory, removed on `remove`, on leaving the context, or by a later process after a crash."""

    def __init__(self) -> None:
        remove_stale()
        while True:
            path = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
            try:
                lock = _lock(path)
            except OSError:
                path.rmdir()
                raise
            # Another process may consider the directory stale before it is locked.
            if lock is not None and path.exists():
                break
        self._lock: int | None = lock
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


@cache
def remove_stale() -> None:
    """Delete directories left by dead processes, once per process; of very many, only some."""
    for path in islice(stale_dirs(), _MAX_REMOVED):
        shutil.rmtree(path, ignore_errors=True)


def stale_dirs() -> Iterator[Path]:
    """Yield this user's temporary directories that no process has locked."""
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith((_PREFIX, *_OLD_PREFIXES)):
                with contextlib.suppress(OSError):
                    yield from _if_stale(Path(entry.path))


def _if_stale(path: Path) -> Iterator[Path]:
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return
    if not path.name.startswith(_PREFIX):
        if time.time() - max(status.st_mtime, status.st_ctime) > _OLD_AFTER_S:
            yield path
    elif _is_marked(path) and (lock := _lock(path)) is not None:
        yield path
        os.close(lock)


def _is_marked(path: Path) -> bool:
    """Whether a directory was created here; an empty one may be left by a crash before its marker was written."""
    names = {entry.name for entry in path.iterdir()}
    return _MARKER in names or not names


def _lock(path: Path) -> int | None:
    """Lock a directory, or return None if another process has locked or removed it; raises OSError otherwise.

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
