"""Finds the git repositories that git itself would use in a folder: `.git` in all its forms, bare ones, submodules."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass

_MAX_STORES = 200
_MAX_FOLDERS = 400
_MAX_DEPTH = 3
# Before the first and after the last command everything is searched, as long as there is an end to it.
_MAX_FOLDERS_OF_ALL = 50_000
_SKIPPED_FOLDERS = frozenset({"node_modules", ".venv", "venv", "target", "__pycache__", ".tox"})
_POINTER_BYTES = 4096
_INDEX_BYTES = 256_000_000
_GITFILE = "gitdir: "
_GITLINK_MODE = 0o160000
# What makes a folder a repository for git, whatever its name.
_STORE_PARTS = ("HEAD", "objects", "refs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A folder with `.git`, what that is, and the repositories it leads to inside the writable folders.

    `pointer` is `.git` if it is a file that names the repository, or a link to it. The first of the `stores` is the
    repository itself, the others are those of its submodules.
    """

    pointer: Path | None
    stores: tuple[Path, ...]


def find_repositories(
    root: Path, extra: Iterable[Path] = (), *, candidates: Iterable[Path] | None = None
) -> Iterator[Repository]:
    """Yield the repositories in a folder and a few levels below; the search is bounded, because a tree can be huge.

    `extra` are further folders to look at, such as submodules at any depth; `candidates` are looked at instead of a
    search.
    """
    for folder in dict.fromkeys((root, *(_candidates(root) if candidates is None else candidates), *extra)):
        if is_store(folder):
            yield Repository(pointer=None, stores=(folder, *_modules(folder)))
        git = folder / ".git"
        if has_type(git, stat.S_ISDIR):
            yield Repository(pointer=None, stores=(git, *_modules(git)))
        elif os.path.lexists(git):
            store = _follow(git)
            is_inside = store is not None and store.is_relative_to(root) and has_type(store, stat.S_ISDIR)
            stores = (store, *_modules(store)) if store is not None and is_inside else ()
            yield Repository(pointer=git, stores=stores)


def is_store(folder: Path) -> bool:
    """Whether git takes a folder for a repository without `.git`."""
    return all(os.path.lexists(folder / name) for name in _STORE_PARTS)


def linked_worktrees(store: Path) -> list[Path]:
    """Return the folders of a repository that belong to its linked worktrees."""
    return [Path(entry.path) for entry in _folders_in(store / "worktrees")][:_MAX_STORES]


def submodule_paths(store: Path, root: Path) -> Iterator[Path]:
    """Yield the folders that the index of a repository takes for submodules: `git status` looks into each."""
    hash_bytes = 32 if b"sha256" in read_small(store / "config").lower() else 20
    for index in (store / "index", *store.glob("sharedindex.*")):
        for name in _gitlinks(read_small(index, _INDEX_BYTES), hash_bytes):
            folder = store.parent / os.fsdecode(name)
            if folder.is_relative_to(root) and ".." not in folder.parts:
                yield folder


def has_type(path: Path, is_type: Callable[[int], bool]) -> bool:
    """Whether a path has a type; links are not followed."""
    try:
        return is_type(path.lstat().st_mode)
    except OSError:
        return False


def read_small(path: Path, limit: int = _POINTER_BYTES) -> bytes:
    """Return the start of a regular file, or nothing; links are not followed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(fd, "rb") as file:
        return file.read(limit) if stat.S_ISREG(os.fstat(fd).st_mode) else b""


def _candidates(root: Path) -> list[Path]:
    """Return the folders below that may be repositories."""
    found: list[Path] = []
    pending, visited = [(root, 0)], 0
    while pending and visited < _MAX_FOLDERS:
        folder, depth = pending.pop(0)
        visited += 1
        try:
            with os.scandir(folder) as entries:
                names = {entry.name: entry for entry in entries}
        except OSError:
            continue
        if folder != root and (".git" in names or all(name in names for name in _STORE_PARTS)):
            found.append(folder)
        if depth < _MAX_DEPTH and folder.name != ".git":
            inner = (entry for entry in names.values() if entry.is_dir(follow_symlinks=False))
            pending += [(Path(entry.path), depth + 1) for entry in inner if entry.name not in _SKIPPED_FOLDERS]
    return found[:_MAX_STORES]


def deep_candidates(root: Path) -> tuple[list[Path], bool]:
    """Return all folders below that may be repositories, and whether the search has come to its end."""
    found: list[Path] = []
    pending, at = [str(root)], 0
    while at < min(len(pending), _MAX_FOLDERS_OF_ALL):
        folder, at = pending[at], at + 1
        try:
            with os.scandir(folder) as entries:
                names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        except OSError:
            continue
        if ".git" in names or all(name in names for name in _STORE_PARTS):
            found.append(Path(folder))
        pending += [f"{folder}/{name}" for name, is_folder in names.items() if is_folder and name != ".git"]
    return found, at == len(pending)


def _follow(git: Path) -> Path | None:
    """Return the repository that a `.git` file or link leads to."""
    if has_type(git, stat.S_ISLNK):
        target = git.resolve()
        return target if target.is_dir() else None
    text = os.fsdecode(read_small(git))
    if not text.startswith(_GITFILE):
        return None
    return (git.parent / text.removeprefix(_GITFILE).rstrip("\n")).resolve()


def _modules(store: Path) -> list[Path]:
    """Return the repositories of submodules, whose names may contain slashes, and of their submodules."""
    found: list[Path] = []
    pending = [Path(entry.path) for entry in _folders_in(store / "modules")]
    while pending and len(found) < _MAX_STORES:
        folder = pending.pop(0)
        if is_store(folder):
            found.append(folder)
            folder = folder / "modules"
        pending += [Path(entry.path) for entry in _folders_in(folder)]
    return found


def _folders_in(folder: Path) -> list["os.DirEntry[str]"]:
    if not has_type(folder, stat.S_ISDIR):
        return []
    try:
        with os.scandir(folder) as entries:
            return sorted((e for e in entries if e.is_dir(follow_symlinks=False)), key=lambda entry: entry.name)
    except OSError:
        return []


def _gitlinks(index: bytes, hash_bytes: int) -> Iterator[bytes]:
    """Yield the paths of the entries of an index (version 2 to 4) that are commits of other repositories."""
    if index[:4] != b"DIRC" or _GITLINK_MODE.to_bytes(4, "big") not in index:
        return
    version, count = int.from_bytes(index[4:8], "big"), int.from_bytes(index[8:12], "big")
    at, path = 12, b""
    for _ in range(count):
        mode = int.from_bytes(index[at + 24 : at + 28], "big")
        flags_at = at + 40 + hash_bytes
        is_extended = index[flags_at] & 0x40 if flags_at < len(index) else 0
        name_at = flags_at + (4 if is_extended else 2)
        kept = b""
        if version == 4:
            dropped, name_at = _varint(index, name_at)
            kept = path[: len(path) - dropped]
        end = index.find(b"\0", name_at)
        if end < 0:
            return
        path = kept + index[name_at:end]
        # Before version 4 an entry is padded to a multiple of eight bytes.
        at = end + 1 if version == 4 else at + (end - at + 8) // 8 * 8
        if mode == _GITLINK_MODE:
            yield path


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at] & 0x7F if at < len(data) else 0
    while at < len(data) and data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F if at < len(data) else 0)
    return value, at + 1
