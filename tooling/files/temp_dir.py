"""Temporary directories: locked while in use, and removed by a later process after a crash."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from types import TracebackType

_PREFIX = "windlass-tmp-"
# A matching name alone does not justify deleting a directory.
_MARKER = ".windlass-temporary"
_CONTENT = "content"
# Prefix of 0.1, without a lock: only the age shows that a directory is unused.
_OLD_PREFIXES = ("windlass-bait-", "windlass-box-")
_OLD_AFTER_S = 7 * 86_400
# Limits for scanning the temporary folder and our directories in it; a later process continues.
_MAX_ENTRIES, _MAX_REMOVED = 10_000, 200


class TempDir:
    """A private directory, removed on `remove`, on leaving the context, or by a later process after a crash.

    `parent` is the folder for temporary files, which is found if it is not given.
    """

    def __init__(self, parent: str = "") -> None:
        remove_stale(parent)
        path, self._lock = _create(parent or _default_folder())
        self.path = path / _CONTENT
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
            _remove(self.path.parent)
            os.close(lock)


def _default_folder() -> str:
    import tempfile

    return tempfile.gettempdir()


def _remove(path: Path) -> None:
    try:
        # All that is left of most; for anything else a module is imported.
        (path / _CONTENT).rmdir()
        (path / _MARKER).unlink()
        path.rmdir()
    except OSError:
        import shutil

        shutil.rmtree(path, ignore_errors=True)


def _create(folder: str) -> tuple[Path, int | None]:
    """Return a new directory and its lock. Raises OSError."""
    while True:
        path = Path(folder, f"{_PREFIX}{os.urandom(8).hex()}").resolve()
        path.mkdir(mode=0o700)
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
def remove_stale(parent: str = "") -> None:
    """Delete directories left by dead processes, once per process."""
    for path in stale_dirs(parent):
        _remove(path)


def stale_dirs(parent: str = "") -> Iterator[Path]:
    """Yield this user's temporary directories that no process has locked."""
    for path in _own_dirs(parent or _default_folder()):
        with contextlib.suppress(OSError):
            if path.name.startswith(_OLD_PREFIXES):
                status = path.lstat()
                if time.time() - max(status.st_mtime, status.st_ctime) > _OLD_AFTER_S:
                    yield path
            elif _is_marked(path) and (lock := _lock(path)) is not None:
                yield path
                os.close(lock)


def _own_dirs(folder: str) -> list[Path]:
    """Return possible directories of ours; the scan is limited, because other users can fill the folder."""
    own = os.getuid()
    found: list[Path] = []
    try:
        with os.scandir(folder) as entries:
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
