"""Temporary directories: locked while in use, and removed by a later process after a crash."""

import contextlib
import fcntl
import os
import shutil
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
# Of the folder for temporary files, and of directories of our own: a later process continues.
_MAX_ENTRIES, _MAX_REMOVED = 10_000, 200


class TempDir:
    """A private directory, removed on `remove`, on leaving the context, or by a later process after a crash."""

    def __init__(self) -> None:
        remove_stale()
        path, self._lock = _create()
        self.path = path / "content"
        try:
            (path / _MARKER).touch(mode=0o600)
            self.path.mkdir(mode=0o700)
        except OSError:
            self.remove()
            raise

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


def _create() -> tuple[Path, int | None]:
    """Return a new directory and its lock. Raises OSError."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        try:
            lock = _lock(path)
        except FileNotFoundError:
            lock = None
        except OSError:
            path.rmdir()
            raise
        # Another process may consider the directory stale before it is locked.
        if lock is not None and path.exists():
            return path, lock


@cache
def remove_stale() -> None:
    """Delete directories left by dead processes, once per process."""
    for path in stale_dirs():
        shutil.rmtree(path, ignore_errors=True)


def stale_dirs() -> Iterator[Path]:
    """Yield this user's temporary directories that no process has locked."""
    for path in _own_dirs():
        with contextlib.suppress(OSError):
            if path.name.startswith(_OLD_PREFIXES):
                status = path.lstat()
                if time.time() - max(status.st_mtime, status.st_ctime) > _OLD_AFTER_S:
                    yield path
            elif _is_marked(path) and (lock := _lock(path)) is not None:
                yield path
                os.close(lock)


def _own_dirs() -> list[Path]:
    """Return what may be ours; others can fill the folder, so not all of it is looked at."""
    own = os.getuid()
    found: list[Path] = []
    try:
        with os.scandir(tempfile.gettempdir()) as entries:
            for entry in islice(entries, _MAX_ENTRIES):
                if entry.name.startswith((_PREFIX, *_OLD_PREFIXES)) and entry.is_dir(follow_symlinks=False):
                    with contextlib.suppress(OSError):
                        found += [Path(entry.path)] if entry.stat(follow_symlinks=False).st_uid == own else []
    except OSError:
        return found
    return sorted(found)[:_MAX_REMOVED]


def _is_marked(path: Path) -> bool:
    """Whether a directory was created here; an empty one may be left by a crash before its marker was written."""
    names = {entry.name for entry in path.iterdir()}
    return _MARKER in names or not names


def _lock(path: Path) -> int | None:
    """Lock a directory, or return None if another process has; the kernel releases the lock when the process ends.

    Raises OSError if the directory cannot be opened or locked.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
