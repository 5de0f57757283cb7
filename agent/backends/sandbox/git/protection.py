"""The paths of existing git repositories that commands may not change, because they make git run programs."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from agent.backends.sandbox.git.config_entries import hooks_folder_of_user, included_paths, paths_of_user
from agent.backends.sandbox.git.repositories import find_repositories, has_type, linked_worktrees, submodule_paths
from tooling.contract.fast_dataclass import dataclass

# Paths that git reads in a repository, and in the part of it that belongs to a linked worktree.
STORE_CODE = ("config", "config.worktree", "commondir", "hooks")
WORKTREE_CODE = ("commondir", "gitdir", "config.worktree")
# Files of a rebase or cherry-pick in progress: its steps may run commands, and a merge strategy is a program. Git
# itself changes these files, so they cannot be protected.
REBASE_STEPS = "rebase-merge/git-rebase-todo"
REBASE_STRATEGY = "rebase-merge/strategy"
PICK_OPTIONS = "sequencer/opts"
IN_PROGRESS = (REBASE_STEPS, REBASE_STRATEGY, PICK_OPTIONS)
# For every mount bubblewrap reads the list of all mounts again, so time grows with the square: these take about a
# second of processor time. It takes no more than 9,000 arguments anyway. The rest is left to the guard.
_MAX_MOUNTS = 500
_MAX_PATH_BYTES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GitPaths:
    """Folders that cannot be renamed or removed, paths that cannot be changed, and the repositories found."""

    pinned: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()
    stores: tuple[Path, ...] = ()


def find_git_paths(
    writable: Iterable[Path], home: Path = Path("/nonexistent"), *, before: GitPaths | None = None
) -> GitPaths:
    """Find repositories in writable folders before the first command runs, and add them to those known before.

    Later it would not be safe: a command could replace a folder by a link, and the sandbox would show its target. A
    path that does not exist cannot be protected: the guard removes it if a command creates it.
    """
    pinned, protected = (dict.fromkeys(paths) for paths in ((before.pinned, before.protected) if before else ((), ())))
    stores: dict[Path, None] = {}
    room = _Room()
    room.take((*pinned, *protected))
    hooks, of_user = hooks_folder_of_user(home), tuple(paths_of_user(home))
    for root in writable:
        parts: list[tuple[Path, tuple[Path, ...]]] = [(root, tuple(path for path in of_user if _is_inside(root, path)))]
        for repository in find_repositories(root, _submodules(root)):
            stores |= dict.fromkeys(repository.stores)
            if repository.pointer is not None:
                is_file = has_type(repository.pointer, stat.S_ISREG)
                parts.append((repository.pointer.parent, (repository.pointer,) if is_file else ()))
            parts += [(store, tuple(_code_paths(root, store, home, hooks))) for store in repository.stores]
        for folder, paths in parts:
            folders = (folder, *(path.parent for path in paths))
            around = {one for inner in folders for one in _path_components(root, inner)}
            # All or nothing: in a folder that can be renamed, a mount protects nothing.
            if room.take((around - pinned.keys()) | (set(paths) - protected.keys())):
                pinned |= dict.fromkeys(sorted(around))
                protected |= dict.fromkeys(paths)
    return GitPaths(pinned=tuple(pinned), protected=tuple(protected), stores=tuple(stores))


class _Room:
    """The remaining number of mounts, and the remaining length of their paths."""

    def __init__(self) -> None:
        self._mounts, self._bytes = _MAX_MOUNTS, _MAX_PATH_BYTES

    def take(self, paths: Collection[Path]) -> bool:
        """Reserve mounts for these paths; return whether there was room for them."""
        size = sum(len(os.fsencode(path)) for path in paths)
        if len(paths) > self._mounts or size > self._bytes:
            return False
        self._mounts, self._bytes = self._mounts - len(paths), self._bytes - size
        return True


def _submodules(root: Path) -> Iterator[Path]:
    return submodule_paths(root / ".git", root)


def _code_paths(root: Path, store: Path, home: Path, hooks: str) -> Iterator[Path]:
    """Yield the existing paths of a repository that must not change; mounts do not follow links."""
    links = linked_code(store)
    if links:
        # The target of a link can change, so this whole repository becomes read-only.
        yield store
    else:
        for folder, names in ((store, STORE_CODE), *((tree, WORKTREE_CODE) for tree in linked_worktrees(store))):
            yield from (folder / name for name in names if _is_file_or_folder(folder / name))
    named = included_paths(store / "config", home, store.parent)
    for path in (*links.values(), *named, *((store.parent / hooks,) if hooks else ())):
        if _is_inside(root, path):
            yield path


def linked_code(store: Path) -> dict[str, Path]:
    """Return the targets of those parts of a repository that are links."""
    links = (store / name for name in STORE_CODE if has_type(store / name, stat.S_ISLNK))
    return {link.name: Path(os.path.realpath(link)) for link in links}


def _is_inside(root: Path, path: Path) -> bool:
    """Whether a path exists in a folder and can be mounted."""
    return path.is_relative_to(root) and path != root and _is_file_or_folder(path)


def _path_components(folder: Path, path: Path) -> list[Path]:
    """Return the path and its parents below the folder: a command that renames one could replace it."""
    inside = path.relative_to(folder).parts
    return [folder.joinpath(*inside[:count]) for count in range(1, len(inside) + 1)]


def _is_file_or_folder(path: Path) -> bool:
    return has_type(path, lambda mode: stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and os.access(path, os.F_OK)
