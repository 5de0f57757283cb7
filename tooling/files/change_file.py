"""Change a file: read it, transform it, save the old content for undo, replace it, and report the change."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from tooling.contract.context import ExecCtx
from tooling.contract.result import FileChange, ToolError
from tooling.contract.secrets import NoSecrets, Secrets
from tooling.files.blobs import BlobStore, content_hash
from tooling.files.file_diff import MAX_PREVIEW_CHARS, compute_change
from tooling.files.pending_write import FileContent, open_for_write
from tooling.files.resolve import resolve_writable

Transform: TypeAlias = Callable[[bytes | None, str], bytes | None]


def change_file(
    path: str, ctx: ExecCtx, transform: Transform, *, makes_folders: bool = False, secrets: Secrets | None = None
) -> FileChange:
    """Change one file: `transform` receives its content (None if it does not exist) and its name, and returns the new.

    The old content is saved to disk before anything changes, so that the change can be undone.
    """
    with open_for_write(lambda: resolve_writable(path, ctx), makes_folders=makes_folders) as file:
        before = file.read()
        after = transform(None if before is None else before.data, file.display_path)
        if before is not None and ctx.blobs_dir is not None:
            BlobStore(ctx.blobs_dir).put(before.data)
        if after is not None:
            file.replace(after, over=before)
        elif before is not None:
            file.remove(over=before)
        return undoable_change(file.display_path, before, after, secrets)


def preview_diff(path: str, ctx: ExecCtx, transform: Transform, secrets: Secrets) -> str:
    """Return the diff of a change without applying it; raises ToolError if the content of the file makes it fail."""
    try:
        with open_for_write(lambda: resolve_writable(path, ctx), makes_folders=False) as file:
            content = file.read()
            before = None if content is None else content.data
    except (ToolError, OSError):
        # Its folder does not exist yet, or the write will be refused.
        before = None
    try:
        after = transform(before, path)
    except ToolError:
        if before is not None:
            raise
        return ""
    change = compute_change(
        path, as_text(before), as_text(after), max_chars=MAX_PREVIEW_CHARS, mask_lines=secrets.mask_lines
    )
    return change.diff


def undoable_change(
    display_path: str, before: FileContent | None, after: bytes | None, secrets: Secrets | None = None
) -> FileChange:
    """Describe a change with the hashes and mode needed to undo it; its diff has masks for the secrets."""
    old = None if before is None else before.data
    mask_lines = (secrets or NoSecrets()).mask_lines
    return replace(
        compute_change(display_path, as_text(old), as_text(after), mask_lines=mask_lines),
        before=None if old is None else content_hash(old),
        after=None if after is None else content_hash(after),
        mode=None if before is None else before.mode,
    )


def as_text(data: bytes | None) -> str | None:
    """Decode content; invalid UTF-8 survives a round trip."""
    return None if data is None else data.decode("utf-8", "surrogateescape")
