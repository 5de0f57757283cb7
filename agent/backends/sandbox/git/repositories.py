"""Finds the git repositories that git itself would use in a folder: `.git` in all its forms, bare ones, submodules."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from agent.backends.sandbox.types import split_words
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
# Below a folder with a longer path, files could have a path that is too long for the system.
_MAX_PATH_BYTES = 3_000
# Such a folder is opened, and then has this short path.
LONG_PATHS = Path("/proc/self/fd")
# Folders of a repository in which git writes: through a link there, it would write elsewhere.
_STORE_FOLDERS = frozenset(
    split_words(
        """
        hooks info logs modules objects rebase-apply rebase-merge refs rr-cache sequencer worktrees branches remotes lfs
        """
    )
)
_SKIPPED_FOLDERS = frozenset({"node_modules", ".venv", "venv", "target", "__pycache__", ".tox"})
MAX_POINTER_BYTES = 4096
# Git reads no longer ones.
_GITFILE_BYTES = 1 << 20
GITFILE = b"gitdir: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A folder in which git finds a repository, and the repositories it refers to inside a writable folder.

    `folder` is its work tree, or the repository itself if it is bare. `pointer` is `.git` if it is a file that names
    the repository, or a link to it. `target` is the repository itself, wherever it is. If that is inside the writable
    folder, it is the first of the `stores`, and the others are those of its submodules.
    """

    folder: Path
    pointer: Path | None
    target: Path | None
    stores: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFolders:
    """The result of a search in all folders: those with repositories, links in repositories, and paths too long."""

    folders: tuple[Path, ...]
    links: tuple[Path, ...]
    too_long: tuple[Path, ...]
    is_complete: bool


def find_repositories(root: Path, folders: Iterable[Path]) -> Iterator[Repository]:
    """Yield the repositories that git finds in these folders; only those inside the root have stores."""
    for folder in dict.fromkeys(folders):
        if is_store(folder):
            yield _repository(root, folder, None, folder)
        git = folder / ".git"
        if has_type(git, stat.S_ISDIR):
            yield _repository(root, folder, None, git)
        elif os.path.lexists(git):
            yield _repository(root, folder, git, _follow(git))


def _repository(root: Path, folder: Path, pointer: Path | None, target: Path | None) -> Repository:
    is_inside = target is not None and target.is_relative_to(root) and has_type(target, stat.S_ISDIR)
    stores = (target, *_modules(target)) if target is not None and is_inside else ()
    return Repository(folder=folder, pointer=pointer, target=target, stores=stores)


def is_store(folder: Path) -> bool:
    """Whether git treats a folder as a repository without `.git`."""
    return is_git_store(lambda name: os.path.lexists(folder / name))


def linked_worktrees(store: Path) -> list[Path]:
    """Return the folders of a repository that belong to its linked worktrees."""
    return [Path(entry.path) for entry in _folders_in(store / "worktrees")]


def common_dir(store: Path) -> Path:
    """Return the repository that a linked worktree belongs to; every other repository belongs to itself."""
    text = read_small(real_path(store / "commondir")).rstrip(b"\r\n").replace(b"\0", b"")
    return real_path(store / os.fsdecode(text)) if text else store


def has_type(path: Path, is_type: Callable[[int], bool]) -> bool:
    """Whether a path has a type; links are not followed."""
    try:
        return is_type(path.lstat().st_mode)
    except OSError:
        return False


def real_path(path: Path) -> Path:
    """Return a path without links, or as it is if that would be too long for the system."""
    try:
        return Path(os.path.realpath(path))
    except OSError:
        return path


def is_folder(path: Path) -> bool:
    """Whether a path is a folder, or a link to one; other than `Path.is_dir`, this never raises."""
    return has_type(real_path(path), stat.S_ISDIR)


def read_small(path: Path, limit: int = MAX_POINTER_BYTES) -> bytes:
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


def nearby_folders(root: Path) -> list[Path]:
    """Return a folder, and those a few levels below that may be repositories; the search is bounded."""
    found = [root]
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
    return found[: _MAX_STORES + 1]


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


def search_all(root: Path, closed_since_ns: int | None = None) -> FoundFolders:
    """Search all folders, also those inside of repositories: a link may lead there.

    Folders closed since the given time are opened.
    """
    found, links, too_long = list[Path](), list[Path](), list[Path]()
    pending, is_readable = [(str(root), False)], True
    left = _MAX_FOLDERS_BEFORE if closed_since_ns is None else _MAX_FOLDERS_AFTER
    while pending and left:
        (folder, is_part), left = pending.pop(), left - 1
        try:
            if not os.access(folder, os.R_OK | os.X_OK) and closed_since_ns is not None:
                open_up(root, Path(folder), closed_since_ns)
            if len(os.fsencode(folder)) > _MAX_PATH_BYTES:
                too_long.append(Path(folder))
                continue
            with os.scandir(folder) as entries:
                inner = {entry.name: entry for entry in entries}
        except OSError:
            is_readable = False
            continue
        is_top = is_git_store(inner.__contains__)
        if ".git" in inner or is_top:
            found.append(Path(folder))
        is_top = is_top or folder.endswith("/.git")
        if is_top or is_part:
            links += [Path(entry.path) for entry in inner.values() if entry.is_symlink()]
        pending += [
            (entry.path, is_part or (is_top and name in _STORE_FOLDERS))
            for name, entry in inner.items()
            if entry.is_dir(follow_symlinks=False)
        ]
    return FoundFolders(
        folders=tuple(found),
        links=tuple(links),
        too_long=tuple(too_long),
        is_complete=is_readable and not pending,
    )


def _follow(git: Path) -> Path | None:
    """Return the repository that a `.git` file or link refers to, in git's interpretation."""
    # A link may lead to the repository, or to a file that names it relative to the link.
    target = real_path(git)
    if has_type(target, stat.S_ISDIR):
        return target
    text = read_small(target, _GITFILE_BYTES)
    if not text.startswith(GITFILE):
        return None
    named, _, _ = text.removeprefix(GITFILE).rstrip(b"\r\n").partition(b"\0")
    return real_path(git.parent / os.fsdecode(named))


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
