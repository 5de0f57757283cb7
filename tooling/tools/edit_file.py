"""The tool edit_file: replace an exact text, or report the most similar lines."""

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
from tooling.files.resolve import missing_file
from tooling.tools.write_file import encode_text

ONLY_WHITESPACE_DIFFERS = "only white space differs"
_MAX_LINES_COMPARED = 5000
_MAX_LINES_SHOWN = 12
_MAX_LINE_CHARS = 300
_MIN_SIMILARITY = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFileParams:
    """Arguments of edit_file."""

    path: str
    old_text: Annotated[str, "exact text, unique in the file"]
    new_text: str
    replace_all: bool = False


class EditFile(Tool[EditFileParams]):
    """Replaces an exact text in a file inside the workspace."""

    params = EditFileParams
    spec = ToolSpec(
        name="edit_file",
        description="Replace old_text with new_text in a file.",
        parameters=schema_of(EditFileParams),
        effect="write",
    )

    def action(self, params: EditFileParams, ctx: ExecCtx) -> Action:
        return Action(
            tool=self.spec.name,
            effect="write",
            subject=params.path,
            cwd=ctx.working_dir,
            preview=lambda: preview_diff(params.path, ctx, lambda before, name: _apply_edit(before, params, name)[0]),
        )

    async def run(self, params: EditFileParams, ctx: ExecCtx) -> ToolResult:
        """Replace the text and report the change."""
        counts: list[int] = []

        def transform(before: bytes | None, display_path: str) -> bytes:
            data, count = _apply_edit(before, params, display_path)
            counts.append(count)
            return data

        change = await asyncio.to_thread(change_file, params.path, ctx, transform)
        places = "1 place" if counts == [1] else f"{counts[-1]} places"
        text = f"Edited {change.path} in {places}: +{change.added_lines} -{change.deleted_lines} lines."
        return ToolResult(text, meta=ToolMeta(changes=(change,)))


def _apply_edit(data: bytes | None, params: EditFileParams, display_path: str) -> tuple[bytes, int]:
    """Return the new content and the number of replacements."""
    before = as_text(data)
    if data is None or before is None:
        raise ToolError(missing_file(display_path))
    if is_binary(data):
        raise ToolError(f"{display_path} is a binary file; change it with a command.")
    old, new = _find_replacement(before, params, display_path)
    count = before.count(old)
    if count > 1 and not params.replace_all:
        raise ToolError(
            f"old_text occurs {count} times in {display_path}; "
            "add surrounding lines to make it unique, or set replace_all."
        )
    return encode_text(before.replace(old, new), display_path), count


def _find_replacement(before: str, params: EditFileParams, display_path: str) -> tuple[str, str]:
    """Return the old and new text with the line endings of the file, or raise ToolError if the old is not in it."""
    if not params.old_text:
        raise ToolError("old_text is empty; use write_file to create or replace a whole file.")
    if params.old_text == params.new_text:
        raise ToolError("old_text and new_text are the same; there is nothing to change.")
    if params.old_text in before:
        return params.old_text, params.new_text
    # Models write bare line feeds; the file keeps its own line endings.
    old_crlf = _with_crlf(params.old_text)
    if "\r\n" in before and old_crlf in before:
        return old_crlf, _with_crlf(params.new_text)
    raise ToolError(f"old_text was not found in {display_path}. {_describe_similar_lines(before, params.old_text)}")


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _describe_similar_lines(text: str, wanted: str) -> str:
    """Show the lines most similar to the wanted ones, or the start of the file."""
    lines = text.splitlines()[:_MAX_LINES_COMPARED]
    wanted_lines = wanted.splitlines()
    anchor = next((index for index, line in enumerate(wanted_lines) if line.strip()), None)
    nearest = None if anchor is None else _most_similar_line(lines, wanted_lines[anchor].strip())
    if nearest is None or anchor is None:
        return f"Nothing similar was found; read the file again. It starts with:\n{_number_lines(lines[:3], 1)}"
    start = max(nearest - anchor, 0)
    found = lines[start : start + min(len(wanted_lines), _MAX_LINES_SHOWN)]
    is_whitespace_only = [line.split() for line in found] == [line.split() for line in wanted_lines]
    difference = f" ({ONLY_WHITESPACE_DIFFERS})" if is_whitespace_only else ""
    return f"Closest match{difference}, copy the text exactly from it:\n{_number_lines(found, start + 1)}"


def _most_similar_line(lines: list[str], wanted: str) -> int | None:
    import difflib

    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[:_MAX_LINE_CHARS])
    best_ratio, best_index = _MIN_SIMILARITY, None
    for index, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:_MAX_LINE_CHARS])
        # Two cheap upper bounds first: the exact ratio is quadratic.
        if matcher.real_quick_ratio() <= best_ratio or matcher.quick_ratio() <= best_ratio:
            continue
        if (ratio := matcher.ratio()) > best_ratio:
            best_ratio, best_index = ratio, index
    return best_index


def _number_lines(lines: list[str], first: int) -> str:
    return "\n".join(f"{number}: {line[:_MAX_LINE_CHARS]}" for number, line in enumerate(lines, first))
