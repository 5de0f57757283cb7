"""read_file: a text file, a page at a time."""

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
from tooling.output import decode_output

MAX_LINES = 2000
MAX_PAGE_CHARS = 50_000
# Counting on to the end of a file is for the notice only; a huge one goes without the total.
MAX_COUNTED_BYTES = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFileParams:
    """Which file, and which lines of it."""

    path: str
    offset: Annotated[int, "first line, from 1"] = 1
    limit: Annotated[int, "most lines"] = MAX_LINES


class _Page(NamedTuple):
    text: str
    first: int
    last: int
    is_cut: bool
    has_more: bool
    total: int | None


class ReadFile(Tool[ReadFileParams]):
    """Reads a text file inside the workspace."""

    params = ReadFileParams
    spec = ToolSpec(
        name="read_file",
        description="Read a text file.",
        parameters=schema_of(ReadFileParams),
        effect="read",
        output_chars=MAX_PAGE_CHARS + 2000,
    )

    def action(self, params: ReadFileParams, ctx: ExecCtx) -> Action:
        """Return the path that is about to be read."""
        return Action(tool=self.spec.name, effect="read", subject=params.path, cwd=ctx.working_dir)

    async def run(self, params: ReadFileParams, ctx: ExecCtx) -> ToolResult:
        """Return the page and, when there is more, how to go on."""
        page = await asyncio.to_thread(_read, params, ctx)
        return ToolResult(
            page.text + _more_notice(page), display=f"Read {params.path} ({page.last - page.first + 1} lines)"
        )


def _read(params: ReadFileParams, ctx: ExecCtx) -> _Page:
    first = max(params.offset, 1)
    file, spot = open_text(params.path, ctx)
    with file:
        skipped = _skip_lines(file, first - 1)
        if skipped < first - 1:
            raise ToolError(f"{spot.display_path} has {skipped} lines; offset {first} is beyond its end.")
        return _read_page(file, first, min(max(params.limit, 1), MAX_LINES))


def _skip_lines(file: io.BufferedReader, lines: int) -> int:
    done = 0
    while done < lines:
        piece = file.readline(MAX_PAGE_CHARS)
        if not piece:
            break
        # The last line counts even without its line feed.
        if piece.endswith(b"\n") or not file.peek(1):
            done += 1
    return done


def _read_page(file: io.BufferedReader, first: int, limit: int) -> _Page:
    lines: list[str] = []
    room = MAX_PAGE_CHARS
    is_cut = False
    while len(lines) < limit and room > 0:
        piece = file.readline(room + 1)
        if not piece:
            break
        if len(piece) > room:
            is_cut = True
            piece = piece[:room]
        room -= len(piece)
        lines.append(decode_output(piece))
    text = "".join(lines).removeprefix("\ufeff")
    last = first + len(lines) - 1
    has_more = is_cut or bool(file.peek(1))
    return _Page(text or "(empty file)", first, last, is_cut, has_more, _count_lines(file, last) if has_more else last)


def _count_lines(file: io.BufferedReader, last: int) -> int | None:
    count, seen, ended = last, 0, True
    while piece := file.read(1_000_000):
        seen += len(piece)
        if seen > MAX_COUNTED_BYTES:
            return None
        count += piece.count(b"\n")
        ended = piece.endswith(b"\n")
    return count if ended else count + 1


def _more_notice(page: _Page) -> str:
    if not page.has_more:
        return ""
    if page.is_cut:
        return f"\n[line {page.last} was cut: the page is full; use a command to see the rest of so long a line]"
    of = "" if page.total is None else f" of {page.total}"
    return f"\n[lines {page.first}-{page.last}{of}; go on with offset={page.last + 1}]"
