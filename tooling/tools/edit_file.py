"""edit_file: one exact replacement, or a hint where it nearly matched."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.result import FileChange, ToolError, ToolMeta, ToolResult
from tooling.contract.shape import schema_of
from tooling.contract.tool import Tool, ToolSpec
from tooling.safety.paths import shown_path, writable_path
from tooling.tools.change import change_of
from tooling.tools.nearest_place import nearest_place
from tooling.tools.regular_file import read_whole, replace_file
from tooling.tools.write_file import encoded


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
        return Action(tool=self.spec.name, effect="write", subject=params.path, cwd=ctx.working_dir)

    async def run(self, params: EditFileParams, ctx: ExecCtx) -> ToolResult:
        """Replace it and report what changed."""
        path = writable_path(params.path, ctx)
        shown = shown_path(path, ctx)
        change, count = await asyncio.to_thread(_edit, path, params, shown)
        places = "1 place" if count == 1 else f"{count} places"
        text = f"Edited {shown} in {places}: +{change.added_lines} -{change.deleted_lines} lines."
        return ToolResult(text, meta=ToolMeta(changes=(change,)))


def _edit(path: Path, params: EditFileParams, shown: str) -> tuple[FileChange, int]:
    # Bytes that are no UTF-8 pass through unchanged.
    before = read_whole(path, shown).decode("utf-8", "surrogateescape")
    old, new = _wanted(before, params, shown)
    count = before.count(old)
    if count > 1 and not params.replace_all:
        raise ToolError(
            f"old_text occurs {count} times in {shown}; add surrounding lines to make it unique, or set replace_all."
        )
    after = before.replace(old, new)
    replace_file(path, encoded(after, shown), shown)
    return change_of(shown, before, after), count


def _wanted(before: str, params: EditFileParams, shown: str) -> tuple[str, str]:
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
    raise ToolError(f"old_text was not found in {shown}. {nearest_place(before, params.old_text)}")


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")
