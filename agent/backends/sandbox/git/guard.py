"""Takes back what commands plant in git repositories, in existing ones and in those they create."""

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from agent.backends.sandbox.git.config_entries import (
    MAX_CONFIG_BYTES,
    hooks_folder_of_user,
    included_paths,
    parse_entries,
    render_entries,
    without_programs,
)
from agent.backends.sandbox.git.protection import REBASE_STEPS, STORE_CODE, WORKTREE_CODE
from agent.backends.sandbox.git.repositories import (
    deep_candidates,
    find_repositories,
    has_type,
    linked_worktrees,
    read_small,
    submodule_paths,
)
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.openat2 import open_beneath

_HOOKS = "hooks"
_CONFIG_NAMES = ("config", "config.worktree")
_MAX_HOOKS = 200
# What is not kept cannot be restored, only disabled.
_MAX_KEPT_BYTES = 50_000_000
# The clock of a file system may lag behind.
_CLOCK_NS = 2_000_000_000
_REBASE_STEPS_NAME = Path(REBASE_STEPS).name
_RUNS_COMMAND = lazy_pattern(rb"\s*(exec|x)\b")
_BLOCKED = ".blocked"
# Git runs no hook with such a name.
_INACTIVE = (".sample", _BLOCKED)
# What git writes into the folder of a linked worktree.
_OWN_REPOSITORY = b"../.."
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class GitGuard:
    """Takes back what is not as it was before the first command; its methods block, so call them in a thread.

    Paths in `mounted` are left alone: commands cannot change them, only the user can.
    """

    def __init__(
        self,
        roots: Iterable[Path],
        stores: Iterable[Path],
        mounted: Collection[Path],
        home: Path = Path("/nonexistent"),
    ) -> None:
        self._roots = tuple(roots)
        self._stores = tuple(stores)
        self._home = home
        self._mounted = frozenset(mounted)
        self._hooks = ""
        self._included: tuple[Path, ...] = ()
        self._configs: set[Path] = set()
        self._before: dict[Path, bytes] = {}
        self._seen: dict[Path, tuple[int, ...]] = {}
        self._learned_ns = 0
        self._is_all_known = True
        self.is_complete = True

    def learn(self) -> None:
        """Remember what all repositories contain; call this before the first command."""
        self._learned_ns = time.time_ns() - _CLOCK_NS
        self._hooks = hooks_folder_of_user(self._home)
        named = [path for store in self._stores for path in included_paths(store / "config", self._home)]
        # Files and folders of hooks that the user's own configuration names, wherever they are in the workspace.
        self._included = tuple(path for path in named if any(path.is_relative_to(root) for root in self._roots))
        self._configs = {path for path in self._included if not path.is_dir()}
        left = _MAX_KEPT_BYTES
        for path in self._code_files((*self._stores, *self._all_stores())):
            self._seen[path] = _signature(path)
            content = read_small(path, MAX_CONFIG_BYTES)
            if len(content) <= left:
                left -= len(content)
                self._before[path] = content
        self._is_all_known = self.is_complete

    def check(self, *, is_deep: bool = False) -> list[str]:
        """Remove what would make git run programs, and return what was removed; a deep check looks into all folders."""
        found: list[str] = []
        stores = self._all_stores() if is_deep else (store for root in self._roots for store in _stores_below(root))
        for path in self._code_files(stores):
            root = next((root for root in self._roots if path.is_relative_to(root)), None)
            if root is not None and self._is_changed(path):
                with contextlib.suppress(OSError):
                    found += [f"{path.relative_to(root)}: {what}" for what in self._clean(root, path)]
                self._seen[path] = _signature(path)
        return found

    def _all_stores(self) -> Iterator[Path]:
        self.is_complete = True
        for root in self._roots:
            candidates, is_complete = deep_candidates(root)
            self.is_complete = self.is_complete and is_complete
            yield from _stores_below(root, candidates)

    def _is_changed(self, path: Path) -> bool:
        seen, now = self._seen.get(path), _signature(path)
        if seen is None and not self._is_all_known:
            # It may have been there all the time; no command can set back the time of its last change.
            return bool(now) and now[-1] >= self._learned_ns
        return seen != now

    def _code_files(self, stores: Iterable[Path]) -> Iterator[Path]:
        """Yield what git reads as configuration or runs, except for what commands cannot change."""
        for store in stores:
            for path in (*_code_files(store), *(_active_hooks(store.parent / self._hooks) if self._hooks else ())):
                if not self._mounted & {path, path.parent, *path.parents[1:2]}:
                    yield path
        for path in self._included:
            if path not in self._mounted:
                yield from _active_hooks(path) if path.is_dir() else (path,)

    def _clean(self, root: Path, path: Path) -> Iterator[str]:
        with _open_parent(root, path) as folder:
            before = self._before.get(path)
            if not has_type(path, stat.S_ISREG):
                # Git would follow a link; the target can change at any time.
                os.rename(path.name, path.name + _BLOCKED, src_dir_fd=folder, dst_dir_fd=folder)
                yield "was no ordinary file, disabled"
            elif path.name == _REBASE_STEPS_NAME:
                yield from _clean_rebase(folder, path, before or b"")
            elif path.name in _CONFIG_NAMES or path in self._configs:
                yield from _clean_config(root, path, folder, before or b"")
            elif before is not None:
                _replace(folder, path.name, before)
                yield "restored"
            elif path.parent.name == _HOOKS or path.parent in self._included or self._is_hook_of_user(path):
                os.rename(path.name, path.name + _BLOCKED, src_dir_fd=folder, dst_dir_fd=folder)
                yield f"new hook, renamed to {path.name}{_BLOCKED}"
            elif path.name == "commondir" and not _names_own_repository(path):
                os.unlink(path.name, dir_fd=folder)
                yield "removed"

    def _is_hook_of_user(self, path: Path) -> bool:
        return bool(self._hooks) and path.parent.parts[-len(Path(self._hooks).parts) :] == Path(self._hooks).parts


def _stores_below(root: Path, candidates: Iterable[Path] | None = None) -> Iterator[Path]:
    """Yield all repositories, with those that the index of one takes for submodules."""
    pending, seen = [root], set[Path]()
    while pending:
        folder = pending.pop()
        for repository in find_repositories(folder, candidates=candidates if folder == root else None):
            for store in repository.stores:
                if store in seen:
                    continue
                seen.add(store)
                yield store
                submodules = [folder for folder in submodule_paths(store, root) if folder not in seen]
                seen.update(submodules)
                pending += submodules


def _code_files(store: Path) -> Iterator[Path]:
    """Yield the paths of a repository that git reads as configuration or runs, if they exist."""
    folders = ((store, STORE_CODE), *((tree, WORKTREE_CODE) for tree in linked_worktrees(store)))
    for folder, names in folders:
        for name in (*names, REBASE_STEPS):
            path = folder / name
            if name == _HOOKS and has_type(path, stat.S_ISDIR):
                yield from _active_hooks(path)
            elif os.path.lexists(path):
                yield path


def _active_hooks(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [folder / entry.name for entry in entries if not entry.name.endswith(_INACTIVE)][:_MAX_HOOKS]
    except OSError:
        return []


def _clean_config(root: Path, path: Path, folder: int, before: bytes) -> Iterator[str]:
    entries = parse_entries(read_small(path, MAX_CONFIG_BYTES))
    trusted = set(parse_entries(before) or ())
    work_tree = next((value for key, value in entries or () if key == "core.worktree"), None)
    if work_tree and "modules" in path.parts and _is_inside(root, path.parent, work_tree):
        # The work tree of a submodule is set in its configuration.
        trusted.add(("core.worktree", work_tree))
    kept, removed = without_programs(entries or (), trusted)
    if entries is None or removed:
        _replace(folder, path.name, render_entries(kept))
        yield f"removed {', '.join(dict.fromkeys(removed))}" if entries is not None else "was not readable, emptied"


def _clean_rebase(folder: int, path: Path, before: bytes) -> Iterator[str]:
    """Remove the steps of a rebase that run commands, except for those from before the first command."""
    lines = read_small(path, MAX_CONFIG_BYTES).splitlines(keepends=True)
    kept = [line for line in lines if not _RUNS_COMMAND.match(line) or line in before.splitlines(keepends=True)]
    if kept != lines:
        _replace(folder, path.name, b"".join(kept))
        yield f"removed {len(lines) - len(kept)} commands of a rebase"


def _is_inside(root: Path, folder: Path, path: str) -> bool:
    return Path(os.path.normpath(folder / path)).is_relative_to(root)


def _names_own_repository(path: Path) -> bool:
    return path.parent.parent.name == "worktrees" and read_small(path).strip() == _OWN_REPOSITORY


@contextlib.contextmanager
def _open_parent(root: Path, path: Path) -> Iterator[int]:
    """Open the folder of a path without following links below the root, so that nothing outside is changed."""
    root_fd = os.open(root, _FOLDER_FLAGS)
    try:
        folder = open_beneath(root_fd, str(path.parent.relative_to(root)), _FOLDER_FLAGS)
    finally:
        os.close(root_fd)
    try:
        yield folder
    finally:
        os.close(folder)


def _replace(folder: int, name: str, content: bytes) -> None:
    mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    temporary = f"{name}.{secrets.token_hex(4)}"
    fd = os.open(temporary, _CREATE_FLAGS, mode, dir_fd=folder)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _signature(path: Path) -> tuple[int, ...]:
    try:
        found = path.lstat()
    except OSError:
        return ()
    return (found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
