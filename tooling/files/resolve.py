"""Where a tool's path leads: the folder that contains it and the way below it, free of links."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolError
from tooling.files.openat2 import DIR_FLAGS, open_beneath
from tooling.safety.paths.workspace_paths import PathRefused, contains, display_path, readable_path, writable_path

# Somebody put a link or a file where a folder was, between resolving and opening.
_RACE_ERRNOS = (errno.ELOOP, errno.ENOTDIR, errno.EXDEV)
_TRIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedPath:
    """A place beneath a folder: `below` holds no link and no `..`; `shown` is its name for the model."""

    root: Path
    relative_path: str
    display_path: str

    @property
    def path(self) -> Path:
        """Return the whole path, for other programs; our own access goes by descriptor."""
        return self.root / self.relative_path

    def open_root(self) -> int:
        """Open the containing folder itself."""
        return os.open(self.root, DIR_FLAGS)

    def open(self, flags: int) -> int:
        """Open what is there; never anything outside the folder."""
        root = self.open_root()
        try:
            return open_beneath(root, self.relative_path, flags)
        finally:
            os.close(root)


def resolve_readable(path: str, ctx: ExecCtx) -> ResolvedPath:
    """Return where a path to be read leads, or raise PathRefused."""
    outputs = () if ctx.outputs_dir is None else (ctx.outputs_dir,)
    return _resolve_in_roots(readable_path(path, ctx), ctx, (ctx.working_dir, *ctx.extra_dirs, *outputs))


def resolve_writable(path: str, ctx: ExecCtx) -> ResolvedPath:
    """Return where a path to be written leads, or raise PathRefused."""
    spot = _resolve_in_roots(writable_path(path, ctx), ctx, (ctx.working_dir, *ctx.extra_dirs))
    # Git runs hooks and what its settings name outside of every box, as soon as the person uses it.
    if any(part.lower() == ".git" for part in spot.relative_path.split("/")):
        raise PathRefused(f"{path!r} belongs to git itself; change it with git commands.")
    return spot


def open_with_retry(
    find: Callable[[], ResolvedPath], open_it: Callable[[ResolvedPath], int]
) -> tuple[int, ResolvedPath]:
    """Find and open; when the way changed in between, find again, a few times. Raises OSError and PathRefused."""
    for _ in range(_TRIES):
        spot = find()
        try:
            return open_it(spot), spot
        except OSError as error:
            if error.errno not in _RACE_ERRNOS:
                raise
            problem = error
    raise problem


def open_to_read(path: str, ctx: ExecCtx, flags: int) -> tuple[int, ResolvedPath]:
    """Open what a tool may read; what cannot be opened is a ToolError in one sentence."""
    try:
        return open_with_retry(lambda: resolve_readable(path, ctx), lambda spot: spot.open(flags))
    except FileNotFoundError:
        raise ToolError(f"{path} does not exist; look with list_directory or find_files.") from None
    except OSError as error:
        raise ToolError(f"{path} cannot be opened: {error.strerror or error}.") from error


def stat_readable(path: str, ctx: ExecCtx) -> tuple[ResolvedPath, os.stat_result]:
    """Return where a path to be read leads and what is there, without keeping it open."""
    fd, spot = open_to_read(path, ctx, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return spot, os.fstat(fd)
    finally:
        os.close(fd)


def _resolve_in_roots(resolved: Path, ctx: ExecCtx, roots: tuple[Path, ...]) -> ResolvedPath:
    # A folder that lies inside another one may be swapped by whoever may write there, so only the outer one counts.
    outer = (root for root in roots if not any(root != other and contains(other, root) for other in roots))
    for root in map(Path.resolve, outer):
        if contains(root, resolved):
            return ResolvedPath(
                root=root, relative_path=str(resolved.relative_to(root)), display_path=display_path(resolved, ctx)
            )
    raise PathRefused(f"{str(resolved)!r} is outside the workspace {ctx.working_dir}; use a path inside it.")
