"""Archives of folders as `.tar.gz`: bounded in size, written atomically, and safe to unpack from any source."""

import io
import json
import os
import posixpath
import secrets
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, cast

from agent.sessions.upkeep.gc import delete_tree
from agent.vocabulary.errors import AgentError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject
from tooling.files.atomic_write import TEMP_SUFFIX, fsync_dir

SUFFIX = ".tar.gz"
FORMAT_VERSION = 1
_INFO = "ARCHIVE.json"
_INFO_BYTES = 65_536
_CHUNK_BYTES = 1_048_576
_FILE_MODES, _FOLDER_MODE = 0o700, 0o700
_SIZE_HINT = "remove what need not be kept, or archive the folder with other tools"


class ArchiveError(AgentError):
    """A folder cannot be archived, or an archive cannot be unpacked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """Limits of an archive; a larger one is neither written nor unpacked."""

    max_bytes: int = 4 * 1024**3
    max_entries: int = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A written archive: its size, its entries, and the paths left out because unpacking them would be unsafe."""

    size_bytes: int
    entries: int
    left_out: tuple[str, ...]


class _Budget:
    """Counts entries and bytes. Raises ArchiveError at a limit."""

    def __init__(self, limits: ArchiveLimits) -> None:
        self._limits = limits
        self.entries = self.bytes = 0

    def spend(self, size: int, *, is_entry: bool = False) -> None:
        self.entries += is_entry
        self.bytes += size
        if self.entries > self._limits.max_entries:
            raise ArchiveError(f"more than {self._limits.max_entries:,} files for one archive", _SIZE_HINT)
        if self.bytes > self._limits.max_bytes:
            raise ArchiveError(f"more than {self._limits.max_bytes:,} bytes for one archive", _SIZE_HINT)


def pack(
    parts: Mapping[str, Path],
    target: Path,
    *,
    info: JsonObject,
    limits: ArchiveLimits | None = None,
    is_left_out: Callable[[str], bool] = lambda path: False,
) -> Packed:
    """Write folders into an archive, each below its name; `is_left_out` gets `name/path/in/it`.

    Only files, folders and symlinks that stay inside are written. Raises ArchiveError if a limit is exceeded or a file
    changes meanwhile; then no archive is written, and an older one is kept.
    """
    budget = _Budget(limits or ArchiveLimits())
    left_out: list[str] = []
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}{TEMP_SUFFIX}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6, format=tarfile.PAX_FORMAT) as tar:
                text = json.dumps({"v": FORMAT_VERSION, **info}).encode()
                tar.addfile(_entry(_INFO, len(text), 0o600, 0), io.BytesIO(text))
                for name, folder in parts.items():
                    left_out += _pack_folder(tar, name, folder, budget, is_left_out)
            file.flush()
            os.fsync(fd)
        temporary.replace(target)
    except OSError as error:
        raise ArchiveError(f"{target.name} could not be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    fsync_dir(target.parent)
    return Packed(size_bytes=target.stat().st_size, entries=budget.entries, left_out=tuple(left_out))


def _pack_folder(
    tar: tarfile.TarFile, part: str, folder: Path, budget: _Budget, is_left_out: Callable[[str], bool]
) -> Iterator[str]:
    """Add a folder; yield the paths left out. Nothing is opened by path, which could lead elsewhere by then."""
    for path, folders, names, fd in os.fwalk(folder, follow_symlinks=False):
        inside = PurePosixPath(part, Path(path).relative_to(folder))
        folders[:] = sorted(name for name in folders if not is_left_out(str(inside / name)))
        for name in (*folders, *sorted(names)):
            where = str(inside / name)
            if is_left_out(where):
                continue
            if not _pack_one(tar, where, name, fd, budget):
                yield where


def _pack_one(tar: tarfile.TarFile, where: str, name: str, folder: int, budget: _Budget) -> bool:
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    entry = _entry(where, 0, found.st_mode, found.st_mtime)
    if stat.S_ISDIR(found.st_mode):
        entry.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(found.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(name, dir_fd=folder)
        if not _stays_inside(where, entry.linkname):
            return False
    elif stat.S_ISREG(found.st_mode):
        return _pack_file(tar, entry, name, folder, budget)
    else:
        return False
    budget.spend(0, is_entry=True)
    tar.addfile(entry)
    return True


def _pack_file(tar: tarfile.TarFile, entry: tarfile.TarInfo, name: str, folder: int, budget: _Budget) -> bool:
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return False
        entry.size = found.st_size
        budget.spend(entry.size, is_entry=True)
        tar.addfile(entry, file)
    return True


def _entry(name: str, size: int, mode: int, mtime: float) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, stat.S_IMODE(mode) & _FILE_MODES, int(mtime)
    return entry


def unpack(source: Path, target: Path, limits: ArchiveLimits | None = None) -> JsonObject:
    """Unpack an archive into a new folder and return its description; on failure the folder does not exist.

    Raises ArchiveError for an archive that is damaged or too large, or has a name or link that points outside.
    """
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}{TEMP_SUFFIX}")
    partial.mkdir(mode=_FOLDER_MODE)
    try:
        with tarfile.open(source, mode="r:gz") as tar:
            info = _unpack_all(tar, partial, _Budget(limits or ArchiveLimits()))
        partial.rename(target)
    except (tarfile.TarError, EOFError, zlib.error, UnicodeError) as error:
        raise ArchiveError(f"{source.name} is damaged: {error}") from error
    except OSError as error:
        raise ArchiveError(f"{source.name} could not be unpacked: {error.strerror or error}") from error
    finally:
        if partial.exists():
            delete_tree(partial)
    return info


def _unpack_all(tar: tarfile.TarFile, folder: Path, budget: _Budget) -> JsonObject:
    info = _read_info(tar)
    links: list[tuple[str, str]] = []
    while (entry := tar.next()) is not None:
        budget.spend(0, is_entry=True)
        path = _checked_path(entry.name)
        if entry.isdir():
            _make_folder(folder, path)
        elif entry.isreg():
            _make_folder(folder, path.parent)
            _unpack_file(cast("IO[bytes]", tar.extractfile(entry)), folder / path, entry.mode, budget)
        elif entry.issym() and _stays_inside(str(path), entry.linkname):
            links.append((str(path), entry.linkname))
        else:
            raise ArchiveError(f"the archive has something other than a file or folder: {entry.name!r}")
    # Last, so that nothing is written through a symlink.
    for name, goal in links:
        _make_folder(folder, PurePosixPath(name).parent)
        (folder / name).symlink_to(goal)
    return info


def _read_info(tar: tarfile.TarFile) -> JsonObject:
    first = tar.next()
    if first is None or first.name != _INFO or not first.isreg() or first.size > _INFO_BYTES:
        raise ArchiveError("this is not an archive of Windlass")
    try:
        info = json.loads(cast("IO[bytes]", tar.extractfile(first)).read(_INFO_BYTES))
    except ValueError as error:
        raise ArchiveError("the description of the archive is damaged") from error
    if not isinstance(info, dict) or info.get("v") != FORMAT_VERSION:
        raise ArchiveError("this archive was written by another version of Windlass")
    return info


def _checked_path(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name or len(name.encode()) > 4096:
        raise ArchiveError(f"the archive has a path that leads out of it: {name!r}")
    return path


def _stays_inside(name: str, goal: str) -> bool:
    """Whether a symlink points into the same part of an archive."""
    part = PurePosixPath(name).parts[0]
    reached = posixpath.normpath(posixpath.join(posixpath.dirname(name), goal))
    return not goal.startswith("/") and PurePosixPath(reached).parts[:1] == (part,)


def _make_folder(root: Path, path: PurePosixPath) -> None:
    current = root
    for part in path.parts:
        current = current / part
        current.mkdir(mode=_FOLDER_MODE, exist_ok=True)
        if current.is_symlink():
            raise ArchiveError(f"the archive has a path through a link: {str(path)!r}")


def _unpack_file(file: IO[bytes], target: Path, mode: int, budget: _Budget) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with file, os.fdopen(os.open(target, flags, 0o600 | (mode & 0o100)), "wb") as output:
        while chunk := file.read(_CHUNK_BYTES):
            budget.spend(len(chunk))
            output.write(chunk)
