"""edit_file: one exact replacement, or a hint where it nearly matched."""

import asyncio
from typing import Annotated

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolMeta, ToolResult
from tooling.contract.tool import Tool, ToolSpec
from tooling.files.change_file import as_text, change_file, preview_diff
from tooling.files.regular_file import is_binary
from tooling.tools.similar_lines import describe_similar_lines
from tooling.tools.write_file import encode_text


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFileParams:
    """Which file, which text in it, and what shall stand there."""

    path: str
    old_text: Annotated[str, "exact text, unique in the file"]
    new_text: str
    replace_all: bool = False


class EditFile(Tool[EditFileParams]):
    """Replaces an exact piece of a file inside the workspace."""

    params = EditFileParams
    spec = ToolSpec(
        name="edit_file",
        description="Replace old_text by new_text in a file.",
        parameters=schema_of(EditFileParams),
        effect="write",
    )

    def action(self, params: EditFileParams, ctx: ExecCtx) -> Action:
        """Return the path that is about to be changed."""
        return Action(
            tool=self.spec.name,
            effect="write",
            subject=params.path,
            cwd=ctx.working_dir,
            preview=lambda: preview_diff(params.path, ctx, lambda before, shown: _apply_edit(before, params, shown)[0]),
        )

    async def run(self, params: EditFileParams, ctx: ExecCtx) -> ToolResult:
        """Replace it and report what changed."""
        counts: list[int] = []

        def edited(before: bytes | None, shown: str) -> bytes:
            data, count = _apply_edit(before, params, shown)
            counts.append(count)
            return data

        change = await asyncio.to_thread(change_file, params.path, ctx, edited)
        places = "1 place" if counts == [1] else f"{counts[-1]} places"
        text = f"Edited {change.path} in {places}: +{change.added_lines} -{change.deleted_lines} lines."
        return ToolResult(text, meta=ToolMeta(changes=(change,)))


def _apply_edit(data: bytes | None, params: EditFileParams, shown: str) -> tuple[bytes, int]:
    """Return the content with the text replaced, and how often that was."""
    before = as_text(data)
    if data is None or before is None:
        raise ToolError(f"{shown} does not exist; look with list_directory or find_files.")
    if is_binary(data):
        raise ToolError(f"{shown} is a binary file; change it with a command.")
    old, new = _find_replacement(before, params, shown)
    count = before.count(old)
    if count > 1 and not params.replace_all:
        raise ToolError(
            f"old_text occurs {count} times in {shown}; add surrounding lines to make it unique, or set replace_all."
        )
    return encode_text(before.replace(old, new), shown), count


def _find_replacement(before: str, params: EditFileParams, shown: str) -> tuple[str, str]:
    """Return the pair to replace, in the line endings of the file, or say why there is none."""
    if not params.old_text:
        raise ToolError("old_text is empty; use write_file to create or replace a whole file.")
    if params.old_text == params.new_text:
        raise ToolError("old_text and new_text are the same; there is nothing to change.")
    if params.old_text in before:
        return params.old_text, params.new_text
    # Models see and write bare line feeds; the file keeps its own.
    windows = _with_crlf(params.old_text)
    if "\r\n" in before and windows in before:
        return windows, _with_crlf(params.new_text)
    raise ToolError(f"old_text was not found in {shown}. {describe_similar_lines(before, params.old_text)}")


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")
