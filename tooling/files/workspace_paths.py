"""Resolve paths of tool calls and refuse those outside the workspace and added folders."""

from collections.abc import Iterable
from pathlib import Path

from tooling.contract.context import ExecCtx
from tooling.contract.result import REFUSED, ToolError
from tooling.files.sensitive_files import is_sensitive_file

_PROGRAM_FOLDERS = ("bin", "sbin")


class PathRefused(ToolError):
    """A path that a tool may not use; the message tells the model what to use instead."""

    def __init__(self, message: str) -> None:
        super().__init__(f"BLOCKED: {message}", status="blocked", exit_code=REFUSED)


def readable_path(path: str, ctx: ExecCtx) -> Path:
    """Return the resolved path if a tool may read it, or raise PathRefused."""
    outputs = () if ctx.outputs_dir is None else (ctx.outputs_dir,)
    return _resolve(path, ctx, (ctx.working_dir, *ctx.extra_dirs, *ctx.read_dirs, *outputs))


def writable_path(path: str, ctx: ExecCtx) -> Path:
    """Return the resolved path if a tool may write it, or raise PathRefused."""
    roots = (ctx.working_dir, *ctx.extra_dirs)
    resolved = _resolve(path, ctx, roots)
    if any(_starts_programs(resolved, home) for home in _inside(ctx.homes, roots)):
        raise PathRefused(f"{path!r} is run or read by the user's programs when they start; it cannot be changed here.")
    return resolved


def _starts_programs(resolved: Path, home: Path) -> bool:
    """Whether a path in a home folder starts or configures programs: hidden ones, and folders of programs."""
    if not contains(home, resolved) or resolved == home:
        return False
    top = resolved.relative_to(home).parts[0]
    return (top.startswith(".") and top != ".git") or top in _PROGRAM_FOLDERS


def _inside(folders: Iterable[Path], roots: Iterable[Path]) -> list[Path]:
    """Return the folders, resolved, that are in one of the roots."""
    outer = [root.resolve() for root in roots]
    return [path for path in map(Path.resolve, folders) if any(contains(root, path) for root in outer)]


def own_prefixes(folder: Path, ctx: ExecCtx) -> tuple[str, ...]:
    """Return the prefixes of paths below a folder, relative to it, that belong to the agent itself."""
    inside = [path.relative_to(folder) for path in _inside(ctx.own_dirs, (folder,)) if path != folder]
    return tuple(f"{path}/" for path in inside)


def contains(root: Path, path: Path) -> bool:
    """Return whether a resolved path is the resolved root or inside it, by whole components."""
    return path == root or root in path.parents


def is_in_outputs(path: Path, ctx: ExecCtx) -> bool:
    """Return whether a resolved path is in the folder with the full outputs of earlier calls."""
    return ctx.outputs_dir is not None and contains(ctx.outputs_dir.resolve(), path)


def display_path(path: Path, ctx: ExecCtx) -> str:
    """Return a path for the model, relative to the workspace if possible."""
    root = ctx.working_dir.resolve()
    return str(path.relative_to(root)) if contains(root, path) else str(path)


def _resolve(path: str, ctx: ExecCtx, roots: tuple[Path, ...]) -> Path:
    if not path.strip():
        raise PathRefused("the path is empty; name a file inside the workspace.")
    try:
        resolved = (ctx.working_dir / path).resolve()
        inside = any(contains(root.resolve(), resolved) for root in roots)
    except (OSError, ValueError, RuntimeError) as error:
        # A loop of links, a NUL byte or an overlong name: treat it as outside.
        raise PathRefused(f"{path!r} cannot be resolved: {error}.") from error
    if not inside:
        raise PathRefused(f"{path!r} is outside the workspace {ctx.working_dir}; use a path inside it.")
    if any(contains(own, resolved) for own in _inside(ctx.own_dirs, roots)) and not is_in_outputs(resolved, ctx):
        raise PathRefused(f"{path!r} belongs to the agent itself; continue without it.")
    if is_sensitive_file(path) or is_sensitive_file(resolved):
        raise PathRefused(f"{path!r} usually contains secrets and is not available to tools; continue without it.")
    return resolved
