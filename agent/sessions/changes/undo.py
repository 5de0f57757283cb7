"""Putting files back as they were before a session's tools changed them, unless somebody changed them since."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from agent.sessions.changes.changes import Span
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import FileChange, ToolError
from tooling.files.blobs import BlobStore, hash_of
from tooling.files.change_file import recorded
from tooling.files.pending_write import target
from tooling.files.resolve import Spot


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What an undo did: files put back, and why others were not."""

    restored: tuple[FileChange, ...] = ()
    unchanged: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def undo(
    spans: Iterable[Span], blobs: BlobStore, *, cwd: Path, is_forced: bool, redact: Callable[[str], str]
) -> Undone:
    """Restore each file to what it held before; one that cannot be restored does not hold up the others.

    What is reported stands relative to `cwd` where the run that changed it worked there, else in full.
    """
    restored: list[FileChange] = []
    unchanged: list[str] = []
    refused: list[str] = []
    for span in spans:
        try:
            change = _restore(span, blobs, is_forced=is_forced)
        except ToolError as error:
            refused.append(str(error))
        else:
            if change is None:
                unchanged.append(span.shown)
            else:
                path = span.shown if span.changes[-1].root == cwd else str(span.path)
                restored.append(replace(change, path=path, diff=redact(change.diff)))
    return Undone(restored=tuple(restored), unchanged=tuple(unchanged), refused=tuple(refused))


def spot_of(span: Span) -> Spot:
    """Return where a recorded path leads: below its run's folder, or below / for one outside of it."""
    root = span.changes[-1].root
    below = PurePosixPath(span.shown)
    if below.is_absolute():
        root, below = Path("/"), below.relative_to("/")
    if ".." in below.parts:
        raise ToolError(f"{span.shown} is not a path that a tool wrote.")
    return Spot(root=root, below=str(below), shown=span.shown)


def _restore(span: Span, blobs: BlobStore, *, is_forced: bool) -> FileChange | None:
    if not span.is_known:
        raise ToolError(f"{span.shown}: what it held was not kept.")
    wanted = None if span.before is None else blobs.read(span.before)
    if span.before is not None and wanted is None:
        raise ToolError(f"{span.shown}: the copy of what it held is gone.")
    with target(lambda: spot_of(span), makes_folders=wanted is not None) as file:
        now = file.content()
        holds = None if now is None else hash_of(now.data)
        if holds == span.before:
            return None
        if not is_forced:
            _check(span, holds)
        if now is not None:
            blobs.keep(now.data)
        if wanted is not None:
            file.replace(wanted, over=now, mode=span.mode)
        elif now is not None:
            file.remove(over=now)
        return recorded(span.shown, now, wanted)


def _check(span: Span, holds: str | None) -> None:
    if holds != span.after:
        what = "was deleted" if holds is None else "was changed" if span.after else "was made again"
        raise ToolError(f"{span.shown} {what} since; --force restores it all the same.")
    if not span.is_unbroken:
        raise ToolError(f"{span.shown} was also changed by others in between; --force takes that back too.")
