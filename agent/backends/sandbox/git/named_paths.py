"""Paths that git's configuration names: other configuration files, folders of hooks, templates of repositories."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent.backends.sandbox.git.config_entries import MAX_CONFIG_BYTES, parse_entries
from agent.backends.sandbox.git.repositories import (
    LONG_PATHS,
    Repository,
    common_dir,
    has_type,
    linked_worktrees,
    read_small,
    real_path,
)
from tooling.contract.fast_dataclass import dataclass

# A file without these words names none of them.
_WORDS = (b"include", b"hookspath", b"templatedir")
_MAX_LINKS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What configuration files name, whether it takes effect now or not: a command can change what decides that.

    `configs` are the files they include. `hooks` are folders, relative to each folder in which git runs hooks; one of
    those are the `work_trees`, which are relative to the repository.
    """

    configs: tuple[Path, ...] = ()
    hooks: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    work_trees: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFolder:
    """A folder of hooks, and the folder to which it is relative."""

    base: Path
    path: Path


def user_configs(home: Path) -> tuple[Path, ...]:
    """Return the user's own configuration files."""
    return (home / ".config/git/config", home / ".gitconfig")


def read_names(configs: Iterable[Path], home: Path) -> Names:
    """Return what these configuration files name, and those that they include."""
    pending = list(configs)
    seen, included = set(pending), list[Path]()
    values: dict[str, list[str]] = {"core.hookspath": [], "init.templatedir": [], "core.worktree": []}
    while pending:
        path = pending.pop()
        text = read_small(real_path(path), MAX_CONFIG_BYTES)
        if not any(word in text.lower() for word in _WORDS):
            continue
        for key, value in parse_entries(text) or ():
            if not value:
                continue
            if key in values:
                values[key].append(os.fspath(_expand(value, home)))
            elif key.startswith(("include.", "includeif.")) and key.endswith(".path"):
                # Relative to the file as git opens it, which may be a link.
                target = path.parent / _expand(value, home)
                included += [target] if target not in seen else []
                pending += [target] if target not in seen else []
                seen.add(target)
    hooks, templates, work_trees = (tuple(dict.fromkeys(found)) for found in values.values())
    return Names(configs=tuple(included), hooks=hooks, templates=templates, work_trees=work_trees)


def names_of(store: Path, home: Path) -> Names:
    """Return what the configuration of a repository and of its linked worktrees names."""
    common = common_dir(store)
    own = (common / "config", common / "config.worktree", store / "config.worktree")
    return read_names(
        dict.fromkeys((*own, *(tree / "config.worktree" for tree in linked_worktrees(common)))),
        home,
    )


def hook_folders(repository: Repository, store: Path, names: Iterable[Names]) -> Iterator[HookFolder]:
    """Yield the configured folders of hooks of a repository: git runs hooks in the work tree or in the repository."""
    common = common_dir(store)
    found = [store, common, *(_work_tree(tree) for tree in linked_worktrees(common))]
    found += [repository.folder] if store == repository.target else []
    for named in names:
        for value in named.hooks:
            for base in (*found, *(store / tree for tree in named.work_trees)):
                yield HookFolder(base=base, path=base / value)


def _work_tree(tree: Path) -> Path:
    """Return the folder of a linked worktree, which its part of the repository names."""
    text = read_small(tree / "gitdir").rstrip(b"\r\n").replace(b"\0", b"")
    return (tree / os.fsdecode(text)).parent


def resolve_steps(path: Path) -> Iterator[Path]:
    """Yield every link on the way to a path, each under its real name, and at last the path without links."""
    if path.is_relative_to(LONG_PATHS):
        yield path
        return
    parts, found, links = list(reversed(path.parts)), Path("/"), 0
    while parts:
        part = parts.pop()
        step = found / part
        if part == "..":
            found = found.parent
        elif has_type(step, stat.S_ISLNK) and links < _MAX_LINKS and (target := _link_target(step)):
            links += 1
            yield step
            parts += reversed(target.parts)
        else:
            found = step
    yield found


def _link_target(link: Path) -> Path | None:
    try:
        return link.readlink()
    except OSError:
        # In /proc, where a link may be unreadable, or its target too long.
        return None


def _expand(value: str, home: Path) -> Path:
    """Return a path with the home folder it starts with: `~/…`, or `~NAME/…` of any user."""
    if value.startswith("~/"):
        return home / value.removeprefix("~/")
    try:
        return Path(value).expanduser()
    except RuntimeError:
        # There is no such user, and git refuses the path.
        return Path(value)
