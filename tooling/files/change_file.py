"""The one way a tool changes a file: read, decide, keep what was, replace, and say what changed."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from tooling.contract.context import ExecCtx
from tooling.contract.result import FileChange, ToolError
from tooling.files.blobs import BlobStore, content_hash
from tooling.files.file_diff import compute_change
from tooling.files.pending_write import FileContent, open_for_write
from tooling.files.resolve import resolve_writable

Transform: TypeAlias = Callable[[bytes | None, str], bytes | None]


def change_file(path: str, ctx: ExecCtx, decide: Transform, *, makes_folders: bool = False) -> FileChange:
    """Change one file: `decide` is given its content (None: there is no file) and its name, and returns the new one.

    What was there is kept and on disk before anything changes, so that the change can be undone.
    """
    with open_for_write(lambda: resolve_writable(path, ctx), makes_folders=makes_folders) as file:
        before = file.read()
        after = decide(None if before is None else before.data, file.display_path)
        if before is not None and ctx.blobs_dir is not None:
            BlobStore(ctx.blobs_dir).put(before.data)
        if after is not None:
            file.replace(after, over=before)
        elif before is not None:
            file.remove(over=before)
        return undoable_change(file.display_path, before, after)


def preview_diff(path: str, ctx: ExecCtx, decide: Transform) -> str:
    """Return the diff that a change would make, or nothing when it cannot be made at all."""
    try:
        with open_for_write(lambda: resolve_writable(path, ctx), makes_folders=False) as file:
            content = file.read()
            before = None if content is None else content.data
    except (ToolError, OSError):
        # A file in a folder that is still to be made, or one that will be refused when it comes to it.
        before = None
    try:
        after = decide(before, path)
    except ToolError:
        return ""
    return compute_change(path, as_text(before), as_text(after)).diff


def undoable_change(shown: str, before: FileContent | None, after: bytes | None) -> FileChange:
    """Return a change with all that is needed to undo it."""
    old = None if before is None else before.data
    return replace(
        compute_change(shown, as_text(old), as_text(after)),
        before=None if old is None else content_hash(old),
        after=None if after is None else content_hash(after),
        mode=None if before is None else before.mode,
    )


def as_text(data: bytes | None) -> str | None:
    """Return content as text; bytes that are no UTF-8 pass through unchanged."""
    return None if data is None else data.decode("utf-8", "surrogateescape")
