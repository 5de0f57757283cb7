"""Replace files atomically: a reader sees the old content or the new, never a part."""

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

# A process killed during a write leaves a file with this suffix; `agent sessions fsck` removes it.
TEMP_SUFFIX = ".tmp"
# Each needs a descriptor, of which some systems allow a process only 256.
_OPEN_AT_ONCE = 32
_SYNCED_AT_ONCE = 8
_ForEach: TypeAlias = Callable[[Callable[[Sequence["_NewFile"]], None], Iterable[Sequence["_NewFile"]]], Iterable[None]]


def write_atomic(path: Path, data: bytes, *, is_synced: bool = True, is_name_synced: bool = True) -> None:
    """Replace the file with `data`, durably if `is_synced`; on failure the old file is unchanged.

    Without `is_name_synced`, call `fsync_dir` afterwards: once for several files.
    """
    file = _NewFile(path, data)
    if is_synced:
        file.sync()
    file.replace()
    if file.problem:
        raise file.problem
    if is_synced and is_name_synced:
        fsync_dir(path.parent)


def write_many(files: Sequence[tuple[Path, bytes]]) -> list[OSError | None]:
    """Replace several files of one folder durably, each atomically; return the error of each, if any."""
    if len(files) == 1:
        problems = _write_group(files, map)
    else:
        # What several threads sync at the same time, a file system commits together.
        with ThreadPoolExecutor(_SYNCED_AT_ONCE, "sync") as pool:
            groups = [files[start : start + _OPEN_AT_ONCE] for start in range(0, len(files), _OPEN_AT_ONCE)]
            problems = [problem for group in groups for problem in _write_group(group, pool.map)]
    try:
        fsync_dir(files[0][0].parent)
    except OSError as problem:
        return [known or problem for known in problems]
    return problems


def _write_group(files: Sequence[tuple[Path, bytes]], for_each: _ForEach) -> list[OSError | None]:
    group = [_NewFile(path, data) for path, data in files]
    # One task for each thread: passing on every file by itself takes longer than all the rest of its write.
    list(for_each(_sync_all, [group[start::_SYNCED_AT_ONCE] for start in range(_SYNCED_AT_ONCE)]))
    for file in group:
        file.replace()
    return [file.problem for file in group]


def _sync_all(files: Sequence["_NewFile"]) -> None:
    for file in files:
        file.sync()


class _NewFile:
    """The new content of a file under a temporary name; after a problem the name is removed and nothing else done."""

    __slots__ = ("_fd", "_path", "_temporary", "problem")

    def __init__(self, path: Path, data: bytes) -> None:
        self.problem: OSError | None = None
        self._path = os.fspath(path)
        folder, _, name = self._path.rpartition("/")
        self._temporary = f"{folder or '.'}/.{name}.{os.urandom(4).hex()}{TEMP_SUFFIX}"
        self._fd = -1
        try:
            self._fd = os.open(
                self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as problem:
            self._fail(problem)

    def sync(self) -> None:
        try:
            if not self.problem:
                os.fsync(self._fd)
        except OSError as problem:
            self._fail(problem)

    def replace(self) -> None:
        """Give the file its name; the last thing to be done with it."""
        try:
            if not self.problem:
                os.close(self._fd)
                self._fd = -1
                os.replace(self._temporary, self._path)  # noqa: PTH105 (a Path takes longer than all of this)
        except OSError as problem:
            self._fail(problem)

    def _fail(self, problem: OSError) -> None:
        self.problem = problem
        with contextlib.suppress(OSError):
            if self._fd >= 0:
                os.close(self._fd)
        Path(self._temporary).unlink(missing_ok=True)


def fsync_dir(folder: Path) -> None:
    """Flush a folder to disk, so that the names of new files survive a crash."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def backup_path(path: Path, mark: str) -> Path:
    """Return an unused path next to a file for a backup of it."""
    names = itertools.chain([f"{path.name}.{mark}"], (f"{path.name}.{mark}-{number}" for number in itertools.count(2)))
    return next(backup for name in names if not (backup := path.with_name(name)).exists())
