"""Reverts changes by commands that would make git run programs, in existing and new repositories."""

import contextlib
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from agent.backends.sandbox.git.code_files import CodeFile, Kind, code_files, hook_files, index_code
from agent.backends.sandbox.git.config_entries import MAX_CONFIG_BYTES
from agent.backends.sandbox.git.index_entries import leads_outside
from agent.backends.sandbox.git.named_paths import (
    Names,
    hook_folders,
    names_of,
    read_names,
    resolve_steps,
    user_configs,
)
from agent.backends.sandbox.git.planted_files import (
    clean_config,
    clean_rebase,
    disable,
    is_program,
    names_helper,
    names_own_repository,
    names_program,
    names_store,
    open_parent,
    replace,
)
from agent.backends.sandbox.git.protection import linked_code, linked_hooks, stores_of
from agent.backends.sandbox.git.repositories import (
    LONG_PATHS,
    Repository,
    common_dir,
    has_type,
    is_folder,
    open_up,
    read_small,
)
from agent.backends.sandbox.git.search import Searched, search_nearby, search_roots

# Larger contents are not stored, so they can only be disabled.
_MAX_KEPT_BYTES = 50_000_000
# The clock of a file system may lag behind.
_CLOCK_NS = 2_000_000_000


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
        self._user = Names()
        self._names: dict[Path, Names] = {}
        self._named: dict[Path, Kind] = {}
        self._work_trees: dict[Path, set[Path]] = {}
        self._kinds: dict[Path, Kind] = {}
        self._before: dict[Path, bytes] = {}
        self._modes: dict[Path, int] = {}
        self._links: dict[Path, Path] = {}
        self._seen: dict[Path, tuple[int, ...]] = {}
        self._learned_ns = 0
        self._is_all_known = True
        self.is_complete = True
        self.left: list[str] = []

    def learn(self) -> None:
        """Record the state of all repositories; call this before the first command."""
        self._learned_ns = time.time_ns() - _CLOCK_NS
        self._user = read_names(user_configs(self._home), self._home)
        with contextlib.ExitStack() as opened:
            found = search_roots(self._roots, self._user, None, opened)
        self.is_complete = self._is_all_known = found.is_complete
        known = (store for repository in found.repositories for store in repository.stores)
        self._stores = tuple(dict.fromkeys((*self._stores, *known)))
        self._learn_names(found.repositories)
        left = _MAX_KEPT_BYTES
        for file in self._code_files(found, is_deep=True):
            self._seen[file.path] = _signature(file.path)
            if has_type(file.path, stat.S_ISLNK):
                self._links[file.path] = file.path.readlink()
                continue
            content = b"" if file.kind is Kind.INDEX else read_small(file.path, MAX_CONFIG_BYTES)
            if len(content) <= left and len(content) < MAX_CONFIG_BYTES:
                left -= len(content)
                self._before[file.path] = content
                self._modes[file.path] = stat.S_IMODE(file.path.lstat().st_mode)

    def _learn_names(self, repositories: Iterable[Repository]) -> None:
        """Record the paths in the workspace that are named in configuration, or are targets of links to code."""
        named = [(path, Kind.CONFIG) for path in (*user_configs(self._home), *self._user.configs)]
        named += [(root / path, Kind.OTHER) for path in self._user.templates for root in self._roots]
        for repository in repositories:
            for store in stores_of(repository):
                common = common_dir(store)
                names = self._names[common] = names_of(store, self._home)
                configured = list(hook_folders(repository, store, (self._user, names)))
                self._work_trees.setdefault(common, set()).update(folder.base for folder in configured)
                folders = (store / "hooks", *(folder.path for folder in configured))
                named += [(path, Kind.CONFIG) for path in names.configs]
                named += [(path, Kind.HOOK) for path in folders]
                named += [(path, Kind.HOOK) for folder in folders for path in linked_hooks(folder)]
                named += [
                    (path, Kind.CONFIG if name.startswith("config") else Kind.OTHER)
                    for name, path in linked_code(store).items()
                ]
        for path, kind in named:
            # A folder of hooks is searched below, and a template is a repository of its own.
            self._named |= {step: kind for step in resolve_steps(path) if self._root_of(step)}

    def check(self, *, is_deep: bool = False) -> list[str]:
        """Remove files that would make git run programs, and return their paths; a deep check searches all folders.

        `left` lists the paths that could not be removed.
        """
        found: list[str] = []
        self.left = []
        with contextlib.ExitStack() as opened:
            if is_deep:
                searched = search_roots(self._roots, self._user, self._learned_ns, opened)
                self.is_complete = searched.is_complete
            else:
                searched = search_nearby(self._roots, self._user)
            for file in self._code_files(searched, is_deep=is_deep):
                path = file.path
                root = self._root_of(path)
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

    def _root_of(self, path: Path) -> Path | None:
        if path.is_relative_to(LONG_PATHS):
            return Path(*path.parts[: len(LONG_PATHS.parts) + 1])
        return next((root for root in self._roots if path.is_relative_to(root)), None)

    def _is_changed(self, path: Path, now: tuple[int, ...]) -> bool:
        seen = self._seen.get(path)
        if seen is None and (not self._is_all_known or path.is_relative_to(LONG_PATHS)):
            # It may have existed before; no command can set back the time of its last change.
            return bool(now) and now[-1] >= self._learned_ns
        return seen != now

    def _code_files(self, found: Searched, *, is_deep: bool) -> Iterator[CodeFile]:
        """Yield the files that git executes or reads as configuration, except those that commands cannot change."""
        for file in self._all_code_files(found, is_deep=is_deep):
            if not self._is_mounted(file.path):
                self._kinds[file.path] = file.kind
                yield file

    def _all_code_files(self, found: Searched, *, is_deep: bool) -> Iterator[CodeFile]:
        for repository in found.repositories:
            if repository.pointer is not None:
                yield CodeFile(path=repository.pointer, kind=Kind.POINTER)
            for store in repository.stores:
                yield from code_files(store)
                yield from index_code(store) if is_deep else ()
            for store in stores_of(repository):
                for folder in hook_folders(repository, store, (self._user, self._trusted_names(store))):
                    for file in hook_files(folder.path):
                        self._learn_from_others(common_dir(store), folder.base, file.path)
                        yield file
        for path, kind in self._named.items():
            if path in self._links or not is_folder(path) or has_type(path, stat.S_ISLNK):
                yield from (CodeFile(path=path, kind=kind),) if os.path.lexists(path) else ()
            elif kind is Kind.HOOK:
                yield from hook_files(path)
        for path in found.links:
            yield CodeFile(path=path, kind=Kind.OTHER)

    def _trusted_names(self, store: Path) -> Names:
        """Return what a configuration from before the first command names, or one that no command can change."""
        common = common_dir(store)
        if common not in self._names and self._root_of(common) is None:
            self._names[common] = names_of(store, self._home)
        return self._names.get(common, Names())

    def _learn_from_others(self, common: Path, base: Path, path: Path) -> None:
        """Expect in a new worktree the same hook as in the other worktrees of the repository."""
        if path in self._before or not path.is_relative_to(base):
            return
        for folder in self._work_trees.get(common, ()):
            known = folder / path.relative_to(base)
            if known != path and known in self._before:
                self._before[path], self._modes[path] = self._before[known], self._modes[known]
            elif known != path and self._is_mounted(known) and has_type(known, stat.S_ISREG):
                self._before[path] = read_small(known, MAX_CONFIG_BYTES)
                self._modes[path] = stat.S_IMODE(known.lstat().st_mode)

    def _is_mounted(self, path: Path) -> bool:
        """Whether a command could not change a file; it could if the file has another name elsewhere."""
        if self._mounted.isdisjoint((path, *path.parents)):
            return False
        return not has_type(path, stat.S_ISREG) or path.lstat().st_nlink == 1

    def _clean(self, root: Path, path: Path) -> Iterator[str]:
        before, kind = self._before.get(path), self._kinds[path]
        with open_parent(root, path) as folder:
            if not has_type(path, stat.S_ISREG):
                yield from self._clean_link(folder, path)
            elif kind is Kind.CONFIG:
                yield from clean_config(root, path, folder, before or b"")
            elif kind is Kind.STEPS:
                yield from clean_rebase(folder, path, before or b"")
            elif kind is Kind.INDEX:
                if leads_outside(path):
                    yield f"names files outside of the work tree, renamed to {disable(folder, path.name)}"
            elif self._is_harmless(path, kind):
                return
            elif before is not None:
                replace(folder, path.name, before, self._modes[path])
                yield "restored"
            else:
                what = "new hook" if kind is Kind.HOOK else "not from git itself"
                yield f"{what}, renamed to {disable(folder, path.name)}"

    def _clean_link(self, folder: int, path: Path) -> Iterator[str]:
        """Disable what is no file: git would follow a link, and its target can change at any time."""
        before = self._links.get(path)
        if has_type(path, stat.S_ISLNK):
            target = path.readlink()
            # An old form of HEAD, which git does not write through.
            if target == before or (path.name == "HEAD" and target.parts[:1] == ("refs",) and ".." not in target.parts):
                return
        disabled = disable(folder, path.name)
        if before is not None:
            os.symlink(before, path.name, dir_fd=folder)
        yield f"was no ordinary file, renamed to {disabled}"

    def _is_harmless(self, path: Path, kind: Kind) -> bool:
        before = self._before.get(path)
        mode = stat.S_IMODE(path.lstat().st_mode)
        if before == read_small(path, MAX_CONFIG_BYTES) and (kind is not Kind.HOOK or mode == self._modes[path]):
            return True
        match kind:
            case Kind.POINTER:
                return names_store(path, self._roots, self._stores)
            case Kind.COMMON_DIR:
                return before is None and names_own_repository(path)
            case Kind.WORK_TREE:
                return before is None
            case Kind.STRATEGY:
                return not is_program(path)
            case Kind.OPTIONS:
                return not names_program(path)
            case Kind.REMOTE:
                return not names_helper(path)
            case _:
                return False


def _signature(path: Path) -> tuple[int, ...]:
    try:
        found = path.lstat()
    except OSError:
        return ()
    return (found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
