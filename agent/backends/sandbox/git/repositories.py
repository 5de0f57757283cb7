"""Finds the git repositories that git itself would use in a folder: `.git` in all its forms, bare ones, submodules."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass
from tooling.files.openat2 import DIR_FLAGS, open_beneath
from tooling.files.resolve import is_git_store

_MAX_STORES = 200
_MAX_FOLDERS = 400
_MAX_DEPTH = 3
# Before the first and after the last command everything is searched, up to a limit. The first command waits for the
# search; the last one may have created folders only to hide a repository behind them.
_MAX_FOLDERS_BEFORE = 50_000
_MAX_FOLDERS_AFTER = 1_000_000
_SKIPPED_FOLDERS = frozenset({"node_modules", ".venv", "venv", "target", "__pycache__", ".tox"})
_POINTER_BYTES = 4096
# Git reads no longer ones.
_GITFILE_BYTES = 1 << 20
_INDEX_BYTES = 256_000_000
_MAX_SHARED_INDEXES = 4
_MAX_NAME_BYTES = 4096
_MAX_VARINT_BYTES = 10
_GITFILE = b"gitdir: "
_GITLINK_MODE = 0o160000


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A folder with `.git`, its type, and the repositories it refers to inside the writable folders.

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
    """Whether git treats a folder as a repository without `.git`."""
    return is_git_store(lambda name: os.path.lexists(folder / name))


def linked_worktrees(store: Path) -> list[Path]:
    """Return the folders of a repository that belong to its linked worktrees."""
    return [Path(entry.path) for entry in _folders_in(store / "worktrees")]


def submodule_paths(store: Path, root: Path) -> Iterator[Path]:
    """Yield the folders listed as submodules in the index of a repository: `git status` enters each of them."""
    hash_bytes = 32 if b"sha256" in read_small(store / "config").lower() else 20
    for index in (store / "index", *islice(store.glob("sharedindex.*"), _MAX_SHARED_INDEXES)):
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


def is_folder(path: Path) -> bool:
    """Whether a path is a folder, or a link to one; other than `Path.is_dir`, this never raises."""
    return has_type(Path(os.path.realpath(path)), stat.S_ISDIR)


def read_small(path: Path, limit: int = _POINTER_BYTES) -> bytes:
    """Return the start of a regular file, or nothing; links are not followed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return b""
    with os.fdopen(fd, "rb") as file:
        return file.read(limit)


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
        if folder != root and (".git" in names or is_git_store(names.__contains__)):
            found.append(folder)
        if depth < _MAX_DEPTH and folder.name != ".git":
            inner = (entry for entry in names.values() if entry.is_dir(follow_symlinks=False))
            pending += [(Path(entry.path), depth + 1) for entry in inner if entry.name not in _SKIPPED_FOLDERS]
    return found[:_MAX_STORES]


def open_up(root: Path, folder: Path, since_ns: int = 0) -> bool:
    """Give the owner access to a folder that was closed since then, and return whether that succeeded.

    A search skips folders that a command has closed, but git opens the files in them by name.
    """
    try:
        root_fd = os.open(root, DIR_FLAGS)
        try:
            fd = open_beneath(root_fd, str(folder.relative_to(root)), DIR_FLAGS)
        finally:
            os.close(root_fd)
        try:
            found = os.fstat(fd)
            is_closed = found.st_mode & stat.S_IRWXU != stat.S_IRWXU
            if found.st_uid != os.geteuid() or found.st_ctime_ns < since_ns or not is_closed:
                return False
            # The descriptor can only be used for this, and cannot be replaced.
            Path(f"/proc/self/fd/{fd}").chmod(stat.S_IMODE(found.st_mode) | stat.S_IRWXU)
        finally:
            os.close(fd)
    except OSError:
        return False
    return True


def deep_candidates(root: Path, closed_since_ns: int | None = None) -> tuple[list[Path], bool]:
    """Return all folders below that may be repositories, and whether the search was complete.

    Also those inside of repositories: a link may lead there. Folders closed since the given time are opened.
    """
    found: list[Path] = []
    pending, is_readable = [str(root)], True
    left = _MAX_FOLDERS_BEFORE if closed_since_ns is None else _MAX_FOLDERS_AFTER
    while pending and left:
        folder, left = pending.pop(), left - 1
        try:
            if not os.access(folder, os.R_OK | os.X_OK) and closed_since_ns is not None:
                open_up(root, Path(folder), closed_since_ns)
            with os.scandir(folder) as entries:
                names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        except OSError:
            is_readable = False
            continue
        if ".git" in names or is_git_store(names.__contains__):
            found.append(Path(folder))
        pending += [f"{folder}/{name}" for name, is_folder in names.items() if is_folder]
    return found, is_readable and not pending


def _follow(git: Path) -> Path | None:
    """Return the repository that a `.git` file or link refers to, in git's interpretation."""
    # A link may lead to the repository, or to a file that names it relative to the link.
    target = Path(os.path.realpath(git))
    if has_type(target, stat.S_ISDIR):
        return target
    text = read_small(target, _GITFILE_BYTES)
    if not text.startswith(_GITFILE):
        return None
    named, _, _ = text.removeprefix(_GITFILE).rstrip(b"\r\n").partition(b"\0")
    return Path(os.path.realpath(git.parent / os.fsdecode(named)))


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
        if end < 0 or len(kept) + end - name_at > _MAX_NAME_BYTES:
            return
        path = kept + index[name_at:end]
        # Before version 4 an entry is padded to a multiple of eight bytes.
        at = end + 1 if version == 4 else at + (end - at + 8) // 8 * 8
        if mode == _GITLINK_MODE:
            yield path


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, end = data[at] & 0x7F if at < len(data) else 0, min(len(data), at + _MAX_VARINT_BYTES)
    while at < end and data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F if at < len(data) else 0)
    return value, at + 1
