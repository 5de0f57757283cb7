"""The paths of git repositories that commands may not change, because they make git run programs."""

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
    """Folders that cannot be renamed or removed, and paths that cannot be changed."""

    pinned: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()


def find_git_paths(writable: Iterable[Path]) -> GitPaths:
    """Find repositories in writable folders and a few levels below, before the first command runs.

    Later it would not be safe: a command could replace a folder by a link, and the sandbox would show its target.
    """
    pinned: list[Path] = []
    protected: list[Path] = []
    for root in writable:
        for folder in (root, *_nested_repositories(root)):
            git = folder / ".git"
            if _has_type(git, stat.S_ISREG):
                # In a linked worktree this file names the repository; changing it would change the configuration.
                protected.append(git)
            if not _has_type(git, stat.S_ISDIR):
                continue
            for store in (git, *_modules(git)):
                parts = _hooks_and_config(store)
                if parts is None:
                    protected.append(store)
                else:
                    pinned += [path for path in _path_components(root, store) if path not in pinned]
                    protected += parts
    return GitPaths(pinned=tuple(pinned), protected=tuple(protected))


def _nested_repositories(root: Path) -> list[Path]:
    """Return folders below that are repositories; the search is bounded, because a tree can be huge."""
    found: list[Path] = []
    pending, visited = [(root, 0)], 0
    while pending and visited < _MAX_FOLDERS:
        folder, depth = pending.pop(0)
        visited += 1
        try:
            entries = [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        if folder != root and any(entry.name == ".git" for entry in entries):
            found.append(folder)
        if depth < _MAX_DEPTH:
            pending += [(Path(entry.path), depth + 1) for entry in entries if entry.name not in _SKIPPED_FOLDERS]
    return found[:_MAX_MODULES]


def _hooks_and_config(store: Path) -> tuple[Path, ...] | None:
    """Return hooks and configuration, or None if one is missing or a link: then the repository is read-only."""
    hooks, config = store / "hooks", store / "config"
    if not os.path.lexists(hooks) and _has_type(store, stat.S_ISDIR):
        # An empty folder changes nothing for git, and can be mounted read-only.
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


def _path_components(folder: Path, path: Path) -> list[Path]:
    """Return the path and its parents below the folder: a command that renames one could replace it."""
    inside = path.relative_to(folder).parts
    return [folder.joinpath(*inside[:count]) for count in range(1, len(inside) + 1)]


def _has_type(path: Path, is_type: Callable[[int], bool]) -> bool:
    """Whether a path has a type; links are not followed."""
    try:
        return is_type(path.lstat().st_mode)
    except OSError:
        return False
