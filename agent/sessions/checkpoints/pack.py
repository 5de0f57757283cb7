"""The pack of a checkpoint: contents of files in one private file, and an index that survives a killed process."""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tooling.contract.fast_dataclass import dataclass
from tooling.files.open_regular import open_fd, read_regular

_PACK, _INDEX = "pack", "index"
# Name of the index between two runs.
_IDLE_INDEX = "index.idle"
_HEAD_VALUES = 4
_CREATE = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_BUFFER_BYTES = 1 << 20
# Larger contents are copied by the kernel, which shares their blocks if the filesystem supports it.
_COPY_BYTES = 1 << 18
_BLOCK_BYTES = 4096
NOT_SAVED = -1


class Entry(NamedTuple):
    """One name in a folder: its type, the signature that shows a change, and the offset of its content in the pack."""

    kind: str
    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    offset: int = NOT_SAVED
    length: int = 0

    @property
    def is_saved(self) -> bool:
        """Whether the content is in the pack."""
        return self.offset != NOT_SAVED

    def has_same_signature(self, other: "Entry") -> bool:
        """Whether the signatures show no difference."""
        if self.kind == "folder":
            return (other.kind, other.mode) == (self.kind, self.mode)
        return self[:6] == other[:6]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexLine:
    """The entry of a path below one of the roots; None if it was removed."""

    root: int
    path: str
    entry: Entry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexHead:
    """The run that created a pack, its working folder, the saved folders, and the excluded ones in them."""

    run_id: str
    cwd: Path
    roots: tuple[Path, ...]
    hidden: tuple[Path, ...] = ()


class Pack:
    """Appends contents and reads them again; `commit` updates the index."""

    def __init__(self, folder: Path, fd: int, *, end: int = 0) -> None:
        self._folder = folder
        self._fd = fd
        self._end = end
        self._buffer = bytearray()
        self._index: int | None = None

    @classmethod
    def create(cls, folder: Path) -> "Pack":
        """Create an empty pack in a folder; it is valid only once it has an index."""
        remove_pack(folder)
        folder.mkdir(mode=0o700, exist_ok=True)
        return cls(folder, os.open(folder / _PACK, _CREATE, 0o600))

    @property
    def size(self) -> int:
        """The number of bytes in the pack."""
        return self._end + len(self._buffer)

    def add(self, fd: int, size: int) -> tuple[int, int]:
        """Append the content of an open file; return its offset and length."""
        if size > _COPY_BYTES and (copied := self._copy(fd, size)) is not None:
            return copied
        os.lseek(fd, 0, os.SEEK_SET)
        start = self.size
        while data := os.read(fd, _BUFFER_BYTES):
            self.append(data)
            if len(data) == size:
                # A whole file, as nearly all are: no further read is needed.
                break
        return start, self.size - start

    def append(self, data: bytes) -> int:
        """Append a content; return its offset."""
        start = self.size
        self._buffer += data
        if len(self._buffer) >= _BUFFER_BYTES:
            self._flush()
        return start

    def read(self, entry: Entry) -> bytes:
        """Return a saved content."""
        self._flush()
        return os.pread(self._fd, entry.length, entry.offset)

    def begin_index(self, head: IndexHead, lines: Iterable[IndexLine]) -> None:
        """Write the index of a complete snapshot, which makes the pack valid for later processes."""
        self._flush()
        partial = self._folder / f"{_INDEX}.tmp"
        self._index = os.open(partial, _CREATE | os.O_APPEND, 0o600)
        self._write_index([_encode_head(head), *map(_encode, lines)])
        partial.replace(self._folder / _INDEX)

    def commit(self, lines: Iterable[IndexLine]) -> None:
        """Append changed entries to the index."""
        self._flush()
        self._write_index([_encode(line) for line in lines])

    def pause(self) -> None:
        """Invalidate the pack between two runs: changes made meanwhile are not the agent's."""
        (self._folder / _INDEX).rename(self._folder / _IDLE_INDEX)

    def resume(self, head: IndexHead, lines: Iterable[IndexLine]) -> None:
        """Resume a paused pack for another run, with the entries that have changed meanwhile."""
        self._flush()
        self._write_index([_encode_head(head), *map(_encode, lines)])
        (self._folder / _IDLE_INDEX).rename(self._folder / _INDEX)

    def is_paused(self) -> bool:
        """Whether a paused pack is still on disk; another process may have removed it."""
        try:
            known = os.fstat(self._fd)
            found = (self._folder / _PACK).lstat()
        except OSError:
            return False
        return os.path.samestat(known, found) and (self._folder / _IDLE_INDEX).exists()

    def remove(self) -> None:
        """Delete the pack and its index."""
        for fd in (self._fd, self._index):
            if fd is not None:
                os.close(fd)
        remove_pack(self._folder)

    def _write_index(self, lines: list[str]) -> None:
        if self._index is not None and lines:
            _write_all(self._index, "".join(f"{line}\n" for line in lines).encode())

    def _flush(self) -> None:
        if self._buffer:
            _write_all(self._fd, self._buffer, at=self._end)
            self._end += len(self._buffer)
            self._buffer.clear()

    def _copy(self, fd: int, size: int) -> tuple[int, int] | None:
        """Let the kernel copy a file to a block boundary; None if it cannot."""
        self._flush()
        start = -(-self._end // _BLOCK_BYTES) * _BLOCK_BYTES
        length = 0
        try:
            while length < size:
                copied = os.copy_file_range(fd, self._fd, size - length, length, start + length)
                if not copied:
                    break
                length += copied
        except (OSError, AttributeError):
            return None
        self._end = start + length
        return start, length


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPack:
    """A pack left by a killed process, with its entries by root and path."""

    pack: Pack
    head: IndexHead
    entries: dict[tuple[int, str], Entry]


def open_pack(folder: Path) -> OpenedPack | None:
    """Open the pack of a killed process; None if there is none or it is incomplete."""
    try:
        head, *lines = read_regular(folder / _INDEX).splitlines()
        opened = _decode_head(head)
        entries: dict[tuple[int, str], Entry] = {}
        for line in _decode(lines):
            if isinstance(line, IndexHead):
                # The pack was resumed for another run.
                opened = line
            elif line.entry is None:
                entries.pop((line.root, line.path), None)
            else:
                entries[(line.root, line.path)] = line.entry
        fd = open_fd(folder / _PACK, os.O_RDWR | os.O_NOFOLLOW)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    pack = Pack(folder, fd, end=os.fstat(fd).st_size)
    return OpenedPack(pack=pack, head=opened, entries=entries)


def remove_pack(folder: Path) -> None:
    """Delete a pack and its index, if there are any."""
    for name in (_INDEX, _IDLE_INDEX, f"{_INDEX}.tmp", _PACK):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _encode_head(head: IndexHead) -> str:
    return json.dumps([head.run_id, str(head.cwd), [*map(str, head.roots)], [*map(str, head.hidden)]])


def _decode_head(line: bytes) -> IndexHead:
    run_id, cwd, roots, hidden = json.loads(line)
    return IndexHead(run_id=run_id, cwd=Path(cwd), roots=tuple(map(Path, roots)), hidden=tuple(map(Path, hidden)))


def _encode(line: IndexLine) -> str:
    return json.dumps([line.root, line.path, line.entry])


def _decode(lines: Iterable[bytes]) -> Iterator[IndexLine | IndexHead]:
    for line in lines:
        try:
            values = json.loads(line)
            if len(values) == _HEAD_VALUES:
                yield _decode_head(line)
                continue
            root, path, entry = values
        except ValueError:
            # The process was killed while writing the last line.
            return
        yield IndexLine(root=root, path=path, entry=None if entry is None else Entry(*entry))


def _write_all(fd: int, data: bytes | bytearray, at: int | None = None) -> None:
    rest = memoryview(bytes(data))
    while rest:
        written = os.write(fd, rest) if at is None else os.pwrite(fd, rest, at)
        at = None if at is None else at + written
        rest = rest[written:]
