"""Searches the writable folders for repositories, also at paths that are too long for the system."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent.backends.sandbox.git.index_entries import submodule_paths
from agent.backends.sandbox.git.named_paths import Names
from agent.backends.sandbox.git.protection import template_repositories
from agent.backends.sandbox.git.repositories import (
    LONG_PATHS,
    Repository,
    find_repositories,
    nearby_folders,
    search_all,
)
from tooling.contract.fast_dataclass import dataclass

_MAX_LONG_PATHS = 100
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """The repositories that were found, the links in them, and whether the search was complete."""

    repositories: tuple[Repository, ...]
    links: tuple[Path, ...] = ()
    is_complete: bool = True


def search_nearby(roots: Iterable[Path], user: Names) -> Searched:
    """Search the first folders of each root, which is quick."""
    return Searched(repositories=tuple(one for root in roots for one in _below(root, nearby_folders(root), user)))


def search_roots(
    roots: Iterable[Path], user: Names, closed_since_ns: int | None, opened: contextlib.ExitStack
) -> Searched:
    """Search all folders; those closed since the given time are opened.

    A folder with a path that is too long is searched by its descriptor, which is closed with `opened`.
    """
    repositories, links, is_complete = list[Repository](), list[Path](), True
    # Nobody has such a path before the first command.
    pending, left = list(roots), 0 if closed_since_ns is None else _MAX_LONG_PATHS
    while pending:
        root = pending.pop(0)
        found = search_all(root, closed_since_ns)
        is_complete = is_complete and found.is_complete and len(found.too_long) <= left
        for folder in found.too_long[:left]:
            left -= 1
            try:
                fd = os.open(folder, _FOLDER_FLAGS)
            except OSError:
                is_complete = False
                continue
            opened.callback(os.close, fd)
            pending.append(LONG_PATHS / str(fd))
        repositories += _below(root, (root, *found.folders), user)
        links += found.links
    return Searched(repositories=tuple(repositories), links=tuple(links), is_complete=is_complete)


def _below(root: Path, folders: Iterable[Path], user: Names) -> Iterator[Repository]:
    """Yield the repositories in folders, around the root, and in the submodules listed in their indexes."""
    yield from template_repositories(root, user)
    pending, seen = [(*folders, *root.parents)], set[Path]()
    while pending:
        for repository in find_repositories(root, pending.pop()):
            yield repository
            for store in repository.stores:
                submodules = [] if store in seen else list(submodule_paths(store, root))
                seen.add(store)
                pending += [tuple(nearby_folders(folder)) for folder in submodules if folder not in seen]
                seen.update(submodules)
