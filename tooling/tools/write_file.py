"""write_file: a whole file, made or replaced in one step."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.result import FileChange, ToolError, ToolMeta, ToolResult
from tooling.contract.shape import schema_of
from tooling.contract.tool import Tool, ToolSpec
from tooling.safety.paths import shown_path, writable_path
from tooling.tools.change import change_of
from tooling.tools.regular_file import read_whole, replace_file


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFileParams:
    """Which file, and all it shall hold."""

    path: str
    content: str


class WriteFile(Tool[WriteFileParams]):
    """Creates or replaces a file inside the workspace."""

    params = WriteFileParams
    spec = ToolSpec(
        name="write_file",
        description="Create or overwrite a file; parent folders are made.",
        parameters=schema_of(WriteFileParams),
        effect="write",
    )

    def action(self, params: WriteFileParams, ctx: ExecCtx) -> Action:
        """Return the path that is about to be written."""
        return Action(tool=self.spec.name, effect="write", subject=params.path, cwd=ctx.working_dir)

    async def run(self, params: WriteFileParams, ctx: ExecCtx) -> ToolResult:
        """Write it and report what changed."""
        path = writable_path(params.path, ctx)
        shown = shown_path(path, ctx)
        change, size = await asyncio.to_thread(_write, path, params.content, shown)
        verb = "Created" if change.status == "added" else "Wrote"
        text = f"{verb} {shown}: {size} bytes, +{change.added_lines} -{change.deleted_lines} lines."
        return ToolResult(text, meta=ToolMeta(changes=(change,)))


def encoded(text: str, shown: str) -> bytes:
    """Return text as the bytes to store."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ToolError(
            f"The text for {shown} holds a half character at {error.start} and cannot be stored."
        ) from error


def _write(path: Path, content: str, shown: str) -> tuple[FileChange, int]:
    data = encoded(content, shown)
    change = change_of(shown, _before(path, shown), content)
    replace_file(path, data, shown)
    return change, len(data)


def _before(path: Path, shown: str) -> str | None:
    if not path.exists():
        return None
    try:
        return read_whole(path, shown).decode("utf-8", "surrogateescape")
    except ToolError:
        # A binary or huge file may be replaced; there is just no diff of it.
        return ""
