"""The tool read_file: read a text file page by page, or show an image."""

import asyncio
import io
from typing import Annotated, NamedTuple

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.tool import Tool, ToolSpec
from tooling.files.regular_file import open_text
from tooling.images.prepare import image_result
from tooling.output import decode_output

MAX_LINES = 2000
MAX_PAGE_CHARS = 50_000
# The total number of lines is only for the notice; a huge file is not read to its end for it.
MAX_COUNTED_BYTES = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFileParams:
    """Arguments of read_file."""

    path: str
    offset: Annotated[int, "first line, from 1"] = 1
    limit: Annotated[int, "maximum lines"] = MAX_LINES


class _Page(NamedTuple):
    text: str
    first: int
    last: int
    is_truncated: bool
    has_more: bool
    total: int | None


class ReadFile(Tool[ReadFileParams]):
    """Reads a text file or an image inside the workspace."""

    params = ReadFileParams
    spec = ToolSpec(
        name="read_file",
        description="Read a text file or look at an image.",
        parameters=schema_of(ReadFileParams),
        effect="read",
        output_chars=MAX_PAGE_CHARS + 2000,
    )

    def action(self, params: ReadFileParams, ctx: ExecCtx) -> Action:
        return Action(tool=self.spec.name, effect="read", subject=params.path, cwd=ctx.working_dir)

    async def run(self, params: ReadFileParams, ctx: ExecCtx) -> ToolResult:
        """Return the page and, if there is more, the offset to continue with; an image is shown."""
        if image := await asyncio.to_thread(image_result, params.path, ctx):
            return image
        page = await asyncio.to_thread(_read, params, ctx)
        return ToolResult(
            page.text + _more_notice(page), display=f"Read {params.path} ({page.last - page.first + 1} lines)"
        )


def _read(params: ReadFileParams, ctx: ExecCtx) -> _Page:
    first = max(params.offset, 1)
    file, target = open_text(params.path, ctx)
    with file:
        skipped = _skip_lines(file, first - 1)
        if skipped < first - 1:
            raise ToolError(f"{target.display_path} has {skipped} lines; offset {first} is beyond its end.")
        return _read_page(file, first, min(max(params.limit, 1), MAX_LINES))


def _skip_lines(file: io.BufferedReader, lines: int) -> int:
    skipped = 0
    while skipped < lines:
        chunk = file.readline(MAX_PAGE_CHARS)
        if not chunk:
            break
        # The last line counts even without a line feed.
        if chunk.endswith(b"\n") or not file.peek(1):
            skipped += 1
    return skipped


def _read_page(file: io.BufferedReader, first: int, limit: int) -> _Page:
    lines: list[str] = []
    remaining = MAX_PAGE_CHARS
    is_truncated = False
    while len(lines) < limit and remaining > 0:
        chunk = file.readline(remaining + 1)
        if not chunk:
            break
        if len(chunk) > remaining:
            is_truncated = True
            chunk = chunk[:remaining]
        remaining -= len(chunk)
        lines.append(decode_output(chunk))
    text = "".join(lines).removeprefix("\ufeff")
    last = first + len(lines) - 1
    has_more = is_truncated or bool(file.peek(1))
    return _Page(
        text or "(empty file)", first, last, is_truncated, has_more, _count_lines(file, last) if has_more else last
    )


def _count_lines(file: io.BufferedReader, last: int) -> int | None:
    count, bytes_read, ends_with_newline = last, 0, True
    while chunk := file.read(1_000_000):
        bytes_read += len(chunk)
        if bytes_read > MAX_COUNTED_BYTES:
            return None
        count += chunk.count(b"\n")
        ends_with_newline = chunk.endswith(b"\n")
    return count if ends_with_newline else count + 1


def _more_notice(page: _Page) -> str:
    if not page.has_more:
        return ""
    if page.is_truncated:
        return f"\n[line {page.last} was cut: it is too long for a page; use a command to see the rest of it]"
    total = "" if page.total is None else f" of {page.total}"
    return f"\n[lines {page.first}-{page.last}{total}; continue with offset={page.last + 1}]"
