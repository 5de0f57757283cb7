"""The paths of existing git repositories that commands may not change, because they make git run programs."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from agent.backends.sandbox.git.code_files import STORE_CODE, WORKTREE_CODE, hook_files
from agent.backends.sandbox.git.index_entries import submodule_paths
from agent.backends.sandbox.git.named_paths import (
    Names,
    hook_folders,
    names_of,
    read_names,
    resolve_steps,
    user_configs,
)
from agent.backends.sandbox.git.repositories import (
    Repository,
    find_repositories,
    has_type,
    linked_worktrees,
    nearby_folders,
    real_path,
)
from tooling.contract.fast_dataclass import dataclass

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
    user = read_names(user_configs(home), home)
    for root in writable:
        parts: list[tuple[Path, tuple[Path, ...]]] = [(root, tuple(_paths_of_user(root, user, home)))]
        for repository in _repositories(root, user):
            stores |= dict.fromkeys(repository.stores)
            if repository.pointer is not None and repository.pointer.is_relative_to(root):
                is_file = has_type(repository.pointer, stat.S_ISREG)
                parts.append((repository.pointer.parent, (repository.pointer,) if is_file else ()))
            for store in stores_of(repository):
                paths = tuple(_code_paths(root, repository, store, user, home))
                parts += [(store if store.is_relative_to(root) else root, paths)]
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


def _repositories(root: Path, user: Names) -> Iterator[Repository]:
    submodules = submodule_paths(root / ".git", root)
    yield from find_repositories(root, (*nearby_folders(root), *submodules, *root.parents))
    yield from template_repositories(root, user)


def template_repositories(root: Path, user: Names) -> Iterator[Repository]:
    """Yield the user's templates in a folder: git copies them into every new repository."""
    for template in dict.fromkeys(real_path(root / value) for value in user.templates):
        if template.is_relative_to(root) and template != root:
            yield Repository(folder=template, pointer=None, target=template, stores=(template,))


def stores_of(repository: Repository) -> tuple[Path, ...]:
    """Return the repositories whose configuration takes effect, wherever they are."""
    return repository.stores or ((repository.target,) if repository.target is not None else ())


def _paths_of_user(root: Path, user: Names, home: Path) -> Iterator[Path]:
    """Yield the user's own configuration and what it includes."""
    for path in (*user_configs(home), *user.configs):
        yield from (step for step in resolve_steps(path) if _is_inside(root, step))


def _code_paths(root: Path, repository: Repository, store: Path, user: Names, home: Path) -> Iterator[Path]:
    """Yield the existing paths of a repository that must not change; mounts do not follow links."""
    links = linked_code(store)
    if links and store.is_relative_to(root):
        # The target of a link can change, so this whole repository becomes read-only.
        yield store
    else:
        for folder, names in ((store, STORE_CODE), *((tree, WORKTREE_CODE) for tree in linked_worktrees(store))):
            yield from (folder / name for name in names if _is_inside(root, folder / name))
    own = names_of(store, home)
    hooks = (store / "hooks", *(folder.path for folder in hook_folders(repository, store, (user, own))))
    named = (*links.values(), *own.configs, *hooks, *(link for folder in hooks for link in linked_hooks(folder)))
    for path in (step for one in named for step in resolve_steps(one)):
        # A folder with everything else, such as the work tree itself, must stay writable.
        if _is_inside(root, path) and not any(one.is_relative_to(path) for one in (repository.folder, store)):
            yield path


def linked_hooks(folder: Path) -> list[Path]:
    """Return the hooks in a folder that are links: scripts of the project, for example."""
    return [file.path for file in hook_files(folder) if has_type(file.path, stat.S_ISLNK)]


def linked_code(store: Path) -> dict[str, Path]:
    """Return the targets of those parts of a repository that are links."""
    links = (store / name for name in STORE_CODE if has_type(store / name, stat.S_ISLNK))
    return {link.name: real_path(link) for link in links}


def _is_inside(root: Path, path: Path) -> bool:
    """Whether a path exists in a folder and can be mounted."""
    return path.is_relative_to(root) and path != root and _is_file_or_folder(path)


def _path_components(folder: Path, path: Path) -> list[Path]:
    """Return the path and its parents below the folder: a command that renames one could replace it."""
    inside = path.relative_to(folder).parts
    return [folder.joinpath(*inside[:count]) for count in range(1, len(inside) + 1)]


def _is_file_or_folder(path: Path) -> bool:
    return has_type(path, lambda mode: stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and os.access(path, os.F_OK)
