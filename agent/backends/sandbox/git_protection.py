"""What of a git repository a command may not change: the files that make git run programs."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass

_MAX_MODULES = 50
_MAX_FOLDERS = 400
_MAX_DEPTH = 3
_SKIPPED_FOLDERS = frozenset({".git", "node_modules", ".venv", "venv", "target", "__pycache__", ".tox"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GitPaths:
    """Folders to hold in place and paths to protect from writing."""

    pinned: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()


def find_git_paths(writable: Iterable[Path]) -> GitPaths:
    """Look for repositories in writable folders and a little below, as they are before the first command runs.

    Later looks would be worth nothing: a command could put a link where a folder is expected, and the box would show
    what the link points to.
    """
    pinned: list[Path] = []
    protected: list[Path] = []
    for root in writable:
        for folder in (root, *_nested_repositories(root)):
            git = folder / ".git"
            if _has_type(git, stat.S_ISREG):
                # A linked worktree names its repository in this file; another name would be another configuration.
                protected.append(git)
            if not _has_type(git, stat.S_ISDIR):
                continue
            for store in (git, *_modules(git)):
                parts = _hooks_and_config(store)
                if parts is None:
                    protected.append(store)
                else:
                    pinned += [place for place in _path_components(root, store) if place not in pinned]
                    protected += parts
    return GitPaths(pinned=tuple(pinned), protected=tuple(protected))


def _nested_repositories(root: Path) -> list[Path]:
    """Return folders below that are repositories of their own; a bounded look, for a tree can be endless."""
    found: list[Path] = []
    waiting, looked = [(root, 0)], 0
    while waiting and looked < _MAX_FOLDERS:
        folder, depth = waiting.pop(0)
        looked += 1
        try:
            entries = [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        if folder != root and any(entry.name == ".git" for entry in entries):
            found.append(folder)
        if depth < _MAX_DEPTH:
            waiting += [(Path(entry.path), depth + 1) for entry in entries if entry.name not in _SKIPPED_FOLDERS]
    return found[:_MAX_MODULES]


def _hooks_and_config(store: Path) -> tuple[Path, ...] | None:
    """Return hooks and configuration, or None when one of them is missing or a link: then the store is read-only."""
    hooks, config = store / "hooks", store / "config"
    if not os.path.lexists(hooks) and _has_type(store, stat.S_ISDIR):
        # An empty folder changes nothing for git, and gives the box something to hold.
        try:
            hooks.mkdir()
        except OSError:
            return None
    if not _has_type(hooks, stat.S_ISDIR) or not _has_type(config, stat.S_ISREG):
        return None
    return (hooks, config)


def _modules(git: Path) -> Iterator[Path]:
    modules = git / "modules"
    if not _has_type(modules, stat.S_ISDIR):
        return
    try:
        names = sorted(entry.name for entry in os.scandir(modules) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    yield from (modules / name for name in names[:_MAX_MODULES])


def _path_components(folder: Path, place: Path) -> list[Path]:
    """Return a path and all above it, down from a folder: who could rename one of them could put another there."""
    inside = place.relative_to(folder).parts
    return [folder.joinpath(*inside[:count]) for count in range(1, len(inside) + 1)]


def _has_type(path: Path, is_kind: Callable[[int], bool]) -> bool:
    """Say whether a path itself, not what it may point to, is of a kind."""
    try:
        return is_kind(path.lstat().st_mode)
    except OSError:
        return False
