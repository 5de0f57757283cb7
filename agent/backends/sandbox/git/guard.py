"""Reverts changes by commands that would make git run programs, in existing and new repositories."""

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from agent.backends.sandbox.git.config_entries import (
    MAX_CONFIG_BYTES,
    hooks_folder_of_user,
    included_paths,
    paths_of_user,
)
from agent.backends.sandbox.git.planted_files import (
    BLOCKED,
    clean_config,
    clean_rebase,
    disable,
    names_own_repository,
    names_program,
    open_parent,
    replace,
)
from agent.backends.sandbox.git.protection import (
    IN_PROGRESS,
    PICK_OPTIONS,
    REBASE_STEPS,
    REBASE_STRATEGY,
    STORE_CODE,
    WORKTREE_CODE,
    linked_code,
)
from agent.backends.sandbox.git.repositories import (
    deep_candidates,
    find_repositories,
    has_type,
    is_folder,
    linked_worktrees,
    open_up,
    read_small,
    submodule_paths,
)
from agent.backends.sandbox.types import split_words

_HOOKS = "hooks"
_CONFIG_NAMES = ("config", "config.worktree")
_MAX_HOOKS = 200
# Larger contents are not stored, so they can only be disabled.
_MAX_KEPT_BYTES = 50_000_000
# The clock of a file system may lag behind.
_CLOCK_NS = 2_000_000_000
# Git runs no hook with this suffix.
_INACTIVE = (".sample", BLOCKED)
# Names of git's hooks, for a folder that is unreadable or has too many files.
_HOOK_NAMES = split_words(
    """
    applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit
    pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update
    reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman
    post-index-change p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit
    """
)


class GitGuard:
    """Reverts differences from the state before the first command; its methods block, so call them in a thread.

    Paths in `mounted` are skipped: only the user can change them.
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
        self._hook_folders: set[Path] = set()
        self._before: dict[Path, bytes] = {}
        self._seen: dict[Path, tuple[int, ...]] = {}
        self._learned_ns = 0
        self._is_all_known = True
        self.is_complete = True
        self.left: list[str] = []

    def learn(self) -> None:
        """Record the state of all repositories; call this before the first command."""
        self._learned_ns = time.time_ns() - _CLOCK_NS
        self._hooks = hooks_folder_of_user(self._home)
        stores = tuple(dict.fromkeys((*self._stores, *self._all_stores(None))))
        named = [path for store in self._stores for path in included_paths(store / "config", self._home, store.parent)]
        named += paths_of_user(self._home)
        configs = {path for path in named if not is_folder(path)}
        for links in map(linked_code, stores):
            named += links.values()
            configs.update(path for name, path in links.items() if name in _CONFIG_NAMES)
        # Files and hook folders named in the user's configuration, anywhere in the workspace.
        self._included = tuple(path for path in named if any(path.is_relative_to(root) for root in self._roots))
        self._configs = configs.intersection(self._included)
        left = _MAX_KEPT_BYTES
        for path in self._code_files(stores):
            self._seen[path] = _signature(path)
            content = read_small(path, MAX_CONFIG_BYTES)
            if len(content) <= left and len(content) < MAX_CONFIG_BYTES:
                left -= len(content)
                self._before[path] = content
        self._is_all_known = self.is_complete

    def check(self, *, is_deep: bool = False) -> list[str]:
        """Remove files that would make git run programs, and return their paths; a deep check searches all folders.

        `left` lists the paths that could not be removed.
        """
        found: list[str] = []
        self.left = []
        stores = (
            self._all_stores(self._learned_ns)
            if is_deep
            else (store for root in self._roots for store in _stores_below(root))
        )
        for path in self._code_files(stores):
            root = next((root for root in self._roots if path.is_relative_to(root)), None)
            checked = _signature(path)
            if root is not None and self._is_changed(path, checked):
                try:
                    cleaned = [f"{path.relative_to(root)}: {what}" for what in self._clean_opened(root, path)]
                except OSError as error:
                    cleaned = []
                    self.left.append(f"{path.relative_to(root)}: {error.strerror}")
                found += cleaned
                # Not as it is now: a process may have replaced it meanwhile.
                self._seen[path] = () if cleaned else checked
        return found

    def _clean_opened(self, root: Path, path: Path) -> list[str]:
        try:
            return list(self._clean(root, path))
        except PermissionError:
            if not open_up(root, path.parent):
                raise
        except OSError:
            link = self._new_link_above(root, path)
            if link is None:
                raise
            with open_parent(root, link) as folder:
                return [f"is in a linked folder, renamed to {disable(folder, link.name)}"]
        return list(self._clean(root, path))

    def _new_link_above(self, root: Path, path: Path) -> Path | None:
        """Return the first folder on the way to a path that is a link made since the first command."""
        above = (root / part for part in reversed(path.relative_to(root).parents))
        link = next((folder for folder in above if has_type(folder, stat.S_ISLNK)), None)
        return link if link is not None and link.lstat().st_ctime_ns >= self._learned_ns else None

    def _all_stores(self, closed_since_ns: int | None) -> Iterator[Path]:
        self.is_complete = True
        for root in self._roots:
            candidates, is_complete = deep_candidates(root, closed_since_ns)
            self.is_complete = self.is_complete and is_complete
            yield from _stores_below(root, candidates)

    def _is_changed(self, path: Path, now: tuple[int, ...]) -> bool:
        seen = self._seen.get(path)
        if seen is None and not self._is_all_known:
            # It may have existed before; no command can set back the time of its last change.
            return bool(now) and now[-1] >= self._learned_ns
        return seen != now

    def _code_files(self, stores: Iterable[Path]) -> Iterator[Path]:
        """Yield the files that git executes or reads as configuration, except those that commands cannot change."""
        for store in stores:
            for path in (*_code_files(store), *(self._hook_files(store.parent / self._hooks) if self._hooks else ())):
                if not self._mounted & {path, path.parent, *path.parents[1:2]}:
                    yield path
        for path in self._included:
            if path not in self._mounted:
                yield from self._hook_files(path) if is_folder(path) else (path,)

    def _hook_files(self, folder: Path) -> Iterator[Path]:
        """Yield the hooks in a configured folder, and the folder itself if it is a link."""
        if has_type(folder, stat.S_ISLNK):
            yield folder
        target = Path(os.path.realpath(folder))
        self._hook_folders.add(target)
        yield from _active_hooks(target)

    def _clean(self, root: Path, path: Path) -> Iterator[str]:
        with open_parent(root, path) as folder:
            before = self._before.get(path)
            if not has_type(path, stat.S_ISREG):
                # Git would follow a link; the target can change at any time.
                disable(folder, path.name)
                yield "was no ordinary file, disabled"
            elif path.match(REBASE_STEPS):
                yield from clean_rebase(folder, path, before or b"")
            elif path.match(REBASE_STRATEGY) or path.match(PICK_OPTIONS):
                if names_program(path):
                    os.unlink(path.name, dir_fd=folder)
                    yield "removed"
            elif path.name in _CONFIG_NAMES or path in self._configs:
                yield from clean_config(root, path, folder, before or b"")
            elif before is not None:
                if read_small(path, MAX_CONFIG_BYTES) != before:
                    replace(folder, path.name, before)
                    yield "restored"
            elif path.parent.name == _HOOKS or path.parent in self._hook_folders:
                yield f"new hook, renamed to {disable(folder, path.name)}"
            elif path.name == "commondir" and not names_own_repository(path):
                os.unlink(path.name, dir_fd=folder)
                yield "removed"


def _stores_below(root: Path, candidates: Iterable[Path] | None = None) -> Iterator[Path]:
    """Yield all repositories, including the submodules listed in their indexes."""
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
    """Yield the existing paths of a repository that git executes or reads as configuration."""
    folders = ((store, STORE_CODE), *((tree, WORKTREE_CODE) for tree in linked_worktrees(store)))
    for folder, names in folders:
        for name in (*names, *IN_PROGRESS):
            path = folder / name
            if name == _HOOKS and has_type(path, stat.S_ISDIR):
                yield from _active_hooks(path)
            elif os.path.lexists(path):
                yield path


def _active_hooks(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            others = [folder / entry.name for entry in entries if not entry.name.endswith(_INACTIVE)][:_MAX_HOOKS]
    except OSError:
        others = []
    return list(dict.fromkeys((*(folder / name for name in _HOOK_NAMES if os.path.lexists(folder / name)), *others)))


def _signature(path: Path) -> tuple[int, ...]:
    try:
        found = path.lstat()
    except OSError:
        return ()
    return (found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
