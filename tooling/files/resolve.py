"""Resolve a tool's path to an allowed root folder and a link-free path beneath it, and open it."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolError
from tooling.files.openat2 import DIR_FLAGS, open_beneath
from tooling.files.workspace_paths import PathRefused, contains, display_path, readable_path, writable_path

# A folder was replaced by a link or a file between resolving and opening.
_RACE_ERRNOS = (errno.ELOOP, errno.ENOTDIR, errno.EXDEV)
_MAX_ATTEMPTS = 4
# Names in a git repository; other folders in it may be work trees.
_STORE_PARTS = frozenset(
    ("HEAD", "branches", "commondir", "config", "config.worktree", "gitdir", "hooks", "info", "modules", "objects")
) | {"rebase-apply", "rebase-merge", "refs", "remotes", "sequencer", "worktrees"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedPath:
    """A path beneath a root: `relative_path` has no links and no `..`; `display_path` is shown to the model."""

    root: Path
    relative_path: str
    display_path: str

    @property
    def path(self) -> Path:
        """The absolute path, for other programs; our own access goes through descriptors."""
        return self.root / self.relative_path

    def open_root(self) -> int:
        return os.open(self.root, DIR_FLAGS)

    def open(self, flags: int) -> int:
        """Open the path; never anything outside the root."""
        root = self.open_root()
        try:
            return open_beneath(root, self.relative_path, flags)
        finally:
            os.close(root)


def resolve_readable(path: str, ctx: ExecCtx) -> ResolvedPath:
    """Resolve a path for reading, or raise PathRefused."""
    outputs = () if ctx.outputs_dir is None else (ctx.outputs_dir,)
    return _resolve_in_roots(
        readable_path(path, ctx), ctx, (ctx.working_dir, *ctx.extra_dirs, *ctx.read_dirs, *outputs)
    )


def resolve_writable(path: str, ctx: ExecCtx) -> ResolvedPath:
    """Resolve a path for writing, or raise PathRefused."""
    target = _resolve_in_roots(writable_path(path, ctx), ctx, (ctx.working_dir, *ctx.extra_dirs))
    # Git runs hooks and configured programs outside the sandbox as soon as the user runs git.
    if any(part.lower() == ".git" for part in target.relative_path.split("/")) or _is_in_git_store(target):
        raise PathRefused(f"{path!r} belongs to git itself; change it with git commands.")
    return target


def is_git_store(has: Callable[[str], bool]) -> bool:
    """Whether git treats a folder as a repository, regardless of its name; `has` tests for an entry in it."""
    # The rest is in the folder named by `commondir`.
    return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))


def _is_in_git_store(target: ResolvedPath) -> bool:
    """Whether a path is part of a repository under another name, or would turn a folder into one."""
    path = target.path
    if path.name == "HEAD":
        return True
    for folder in path.parents:
        if not contains(target.root, folder):
            return False
        there = {path.relative_to(folder).parts[0]}
        if there <= _STORE_PARTS:
            there |= {name for name in _STORE_PARTS if os.path.lexists(folder / name)}
            if is_git_store(there.__contains__):
                return True
    return False


def open_with_retry(
    resolve: Callable[[], ResolvedPath], open_resolved: Callable[[ResolvedPath], int]
) -> tuple[int, ResolvedPath]:
    """Resolve and open a path, retrying a few times if it changes in between. Raises OSError and PathRefused."""
    for _ in range(_MAX_ATTEMPTS):
        target = resolve()
        try:
            return open_resolved(target), target
        except OSError as error:
            if error.errno not in _RACE_ERRNOS:
                raise
            problem = error
    raise problem


def missing_file(path: str) -> str:
    """Return the error for a file that does not exist, with a hint for the model."""
    return f"{path} does not exist; use list_directory or find_files to find it."


def open_to_read(path: str, ctx: ExecCtx, flags: int) -> tuple[int, ResolvedPath]:
    """Open a path that a tool may read; raise ToolError if it cannot be opened."""
    try:
        return open_with_retry(lambda: resolve_readable(path, ctx), lambda target: target.open(flags))
    except FileNotFoundError:
        raise ToolError(missing_file(path)) from None
    except OSError as error:
        raise ToolError(f"{path} cannot be opened: {error.strerror or error}.") from error


def stat_readable(path: str, ctx: ExecCtx) -> tuple[ResolvedPath, os.stat_result]:
    """Resolve a path for reading and return it with its status."""
    fd, target = open_to_read(path, ctx, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return target, os.fstat(fd)
    finally:
        os.close(fd)


def _resolve_in_roots(resolved: Path, ctx: ExecCtx, roots: tuple[Path, ...]) -> ResolvedPath:
    # A root inside another root can be swapped by anything that writes to the outer one: only outer roots are trusted.
    outer = (root for root in roots if not any(root != other and contains(other, root) for other in roots))
    for root in map(Path.resolve, outer):
        if contains(root, resolved):
            return ResolvedPath(
                root=root, relative_path=str(resolved.relative_to(root)), display_path=display_path(resolved, ctx)
            )
    raise PathRefused(f"{str(resolved)!r} is outside the workspace {ctx.working_dir}; use a path inside it.")
