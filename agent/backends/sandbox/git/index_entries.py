"""Reads the index of a repository: its submodules, and paths that no honest index has."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from agent.backends.sandbox.git.repositories import read_small
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern

_INDEX_BYTES = 256_000_000
_MAX_SHARED_INDEXES = 4
_MAX_NAME_BYTES = 4096
_MAX_VARINT_BYTES = 10
_GITLINK_MODE = 0o160000
_NAME_LENGTH = 0xFFF
_HASH_BYTES = (20, 32)
_LEADS_OUTSIDE = lazy_pattern(rb"(?i)(?:^|/)(?:\.\.|\.git)(?:/|$)|^/|\0")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    mode: int
    path: bytes
    start: int
    end: int


def submodule_paths(store: Path, root: Path) -> Iterator[Path]:
    """Yield the folders listed as submodules in the index of a repository: `git status` enters each of them."""
    for index in (store / "index", *islice(store.glob("sharedindex.*"), _MAX_SHARED_INDEXES)):
        data = read_small(index, _INDEX_BYTES)
        if _GITLINK_MODE.to_bytes(4, "big") not in data:
            continue
        hash_bytes = _HASH_BYTES[b"sha256" in read_small(store / "config").lower()]
        for entry in _entries(data, hash_bytes):
            folder = store.parent / os.fsdecode(entry.path.replace(b"\0", b""))
            if entry.mode == _GITLINK_MODE and folder.is_relative_to(root) and ".." not in folder.parts:
                yield folder


def index_files(folder: Path) -> list[Path]:
    """Return the indexes of a repository or a linked worktree."""
    return [path for path in (folder / "index", *folder.glob("sharedindex.*")) if os.path.lexists(path)]


def leads_outside(index: Path) -> bool:
    """Whether an index has a path outside of the work tree or in `.git`: `git checkout .` would write there."""
    data = read_small(index, _INDEX_BYTES)
    if data[:4] != b"DIRC":
        return False
    # Which one git expects is in a configuration that may change, and one file could be valid as both.
    found = [_has_path_outside(data, hash_bytes) for hash_bytes in _HASH_BYTES]
    # If it is not read to its end, it is broken or too large.
    return True in found or False not in found


def _has_path_outside(data: bytes, hash_bytes: int) -> bool | None:
    """Whether an index with hashes of this length has such a path; None if it is not one."""
    starts, end, is_outside = [], 12, False
    for entry in _entries(data, hash_bytes):
        is_outside = is_outside or bool(_LEADS_OUTSIDE.search(entry.path))
        starts.append(entry.start)
        end = entry.end
    if len(starts) != int.from_bytes(data[8:12], "big"):
        return None
    return is_outside or _has_other_entries(data, starts, end, hash_bytes)


def _has_other_entries(data: bytes, starts: list[int], end: int, hash_bytes: int) -> bool:
    """Whether a large index names other places for its entries: git then reads them there, with several threads."""
    at = len(data) - hash_bytes * 2 - 12
    if data[at : at + 4] != b"EOIE":
        return False
    if int.from_bytes(data[at + 8 : at + 12], "big") != end:
        return True
    while (signature := data[end : end + 4]) and signature != b"IEOT" and end < at:
        end += 8 + int.from_bytes(data[end + 4 : end + 8], "big")
    if signature != b"IEOT":
        return False
    blocks = data[end + 12 : end + 8 + int.from_bytes(data[end + 4 : end + 8], "big")]
    read = 0
    for block in range(0, len(blocks), 8):
        if starts[read : read + 1] != [int.from_bytes(blocks[block : block + 4], "big")]:
            return True
        read += int.from_bytes(blocks[block + 4 : block + 8], "big")
    return read != len(starts)


def _entries(index: bytes, hash_bytes: int) -> Iterator[_Entry]:
    """Yield the entries of an index (version 2 to 4), up to a broken one."""
    version, count = int.from_bytes(index[4:8], "big"), int.from_bytes(index[8:12], "big")
    at, path = 12, b""
    for _ in range(count if index[:4] == b"DIRC" else 0):
        start, flags_at = at, at + 40 + hash_bytes
        flags = int.from_bytes(index[flags_at : flags_at + 2], "big")
        name_at = flags_at + (4 if flags & 0x4000 else 2)
        kept = b""
        if version == 4:
            dropped, name_at = _varint(index, name_at)
            kept = path[: max(0, len(path) - dropped)]
        # Like git: the name ends where its length says, whatever it contains.
        length = flags & _NAME_LENGTH
        end = index.find(b"\0", name_at) if length == _NAME_LENGTH else name_at + length - len(kept)
        if not name_at <= end < len(index) or len(kept) + end - name_at > _MAX_NAME_BYTES:
            return
        path = kept + index[name_at:end]
        # Before version 4 an entry is padded to a multiple of eight bytes.
        at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
        yield _Entry(mode=int.from_bytes(index[start + 24 : start + 28], "big"), path=path, start=start, end=at)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, end = data[at] & 0x7F if at < len(data) else 0, min(len(data), at + _MAX_VARINT_BYTES)
    while at < end and data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F if at < len(data) else 0)
    return value, at + 1
