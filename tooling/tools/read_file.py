"""The tool read_file: read text files page by page, or show images."""

import asyncio
import io
import os
import re
from typing import Annotated, NamedTuple

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.image import Image
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolResult, error_result
from tooling.contract.secrets import Secrets
from tooling.contract.tool import Tool, ToolSpec
from tooling.files.regular_file import open_text
from tooling.output import decode_output

MAX_LINES = 2000
MAX_PAGE_CHARS = 50_000
MIN_PAGE_CHARS = 1000
# Longer than any private key: a secret that starts further up is not recognized.
_BEFORE_BYTES = 16_000
# The total number of lines is only for the notice; a huge file is not read completely for it.
MAX_COUNTED_BYTES = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFileParams:
    """Arguments of read_file."""

    path: str
    offset: Annotated[int, "first line, from 1"] = 1
    limit: Annotated[int, "maximum lines"] = MAX_LINES
    more: Annotated[tuple[str, ...], "also read these: path or path:first-last"] = ()

    @property
    def ranges(self) -> tuple["_Range", ...]:
        """All files and their lines, in order."""
        return (_Range(self.path, self.offset, self.limit), *map(_Range.parse, self.more))


class _Range(NamedTuple):
    """A part of a file."""

    path: str
    offset: int
    limit: int

    @classmethod
    def parse(cls, text: str) -> "_Range":
        """Parse `path`, `path:line` or `path:first-last`."""
        parts = re.fullmatch(r"(.+?):(\d+)(?:-(\d*))?", text)
        if parts is None:
            return cls(text, 1, MAX_LINES)
        first = max(int(parts[2]), 1)
        last = first if parts[3] is None else int(parts[3] or first + MAX_LINES - 1)
        return cls(parts[1], first, max(last - first + 1, 1))


class _Page(NamedTuple):
    text: str
    first: int
    last: int
    is_truncated: bool
    has_more: bool
    total: int | None
    size: int


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
        paths = tuple(dict.fromkeys(part.path for part in params.ranges))
        return Action(tool=self.spec.name, effect="read", subject=", ".join(paths), cwd=ctx.working_dir, paths=paths)

    async def run(self, params: ReadFileParams, ctx: ExecCtx) -> ToolResult:
        """Return the pages and, where there is more, the offset to continue with; images are shown."""
        if len(params.ranges) > 1:
            return await asyncio.to_thread(_read_several, params.ranges, ctx, self._services.secrets)
        path = params.ranges[0].path
        if image := await asyncio.to_thread(_read_image, path, ctx):
            return image
        page = await asyncio.to_thread(_read, params.ranges[0], ctx, MAX_PAGE_CHARS, self._services.secrets)
        return ToolResult(page.text + _more_notice(page), display=f"Read {path} ({page.last - page.first + 1} lines)")


def _read_image(path: str, ctx: ExecCtx) -> ToolResult | None:
    from tooling.images.prepare import image_result

    return image_result(path, ctx)


def _read_several(ranges: tuple[_Range, ...], ctx: ExecCtx, secrets: Secrets) -> ToolResult:
    """Read several files into one result; an unreadable one does not affect the others."""
    sections: list[str] = []
    images: list[Image] = []
    problems = 0
    remaining = MAX_PAGE_CHARS
    for index, part in enumerate(ranges):
        try:
            if shown := _read_image(part.path, ctx):
                images += shown.images
                sections.append(f"==> {part.path} <==\n{shown.content}")
                continue
            page = _read(part, ctx, max(remaining // (len(ranges) - index), MIN_PAGE_CHARS), secrets)
            remaining -= len(page.text)
            sections.append(f"==> {part.path} ({_describe_page(page)}) <==\n{page.text.rstrip()}{_more_notice(page)}")
        except ToolError as error:
            problems += 1
            sections.append(f"==> {part.path} <==\n{error}")
    text, display = "\n\n".join(sections), f"Read {len(ranges) - problems} of {len(ranges)} files"
    if problems == len(ranges):
        return error_result(text, display=display)
    return ToolResult(text, display=display, images=tuple(images))


def _read(part: _Range, ctx: ExecCtx, max_chars: int, secrets: Secrets) -> _Page:
    first = max(part.offset, 1)
    file, target = open_text(part.path, ctx)
    with file:
        skipped, before = _skip_lines(file, first - 1)
        if skipped < first - 1:
            raise ToolError(f"{target.display_path} has {skipped} lines; offset {first} is beyond its end.")
        page = _read_page(file, first, min(max(part.limit, 1), MAX_LINES), max_chars)
    return page._replace(text=_mask_begun(decode_output(before), page.text, secrets)) if before else page


def _mask_begun(before: str, text: str, secrets: Secrets) -> str:
    """Mask the rest of a secret that starts before a page, such as a private key: alone it cannot be recognized."""
    if not any(start < len(before) < end for start, end in secrets.find_secrets(before + text)):
        return text
    return "\n".join(secrets.mask_lines(before + text).split("\n")[before.count("\n") :])


def _skip_lines(file: io.BufferedReader, lines: int) -> tuple[int, bytes]:
    """Skip lines; return their number, and the end of the skipped text."""
    skipped, before = 0, b""
    while skipped < lines:
        chunk = file.readline(MAX_PAGE_CHARS)
        if not chunk:
            break
        before = (before + chunk)[-_BEFORE_BYTES:]
        # The last line counts even without a line feed.
        if chunk.endswith(b"\n") or not file.peek(1):
            skipped += 1
    return skipped, before


def _read_page(file: io.BufferedReader, first: int, limit: int, max_chars: int) -> _Page:
    lines: list[str] = []
    remaining = max_chars
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
        text=text or "(empty file)",
        first=first,
        last=last,
        is_truncated=is_truncated,
        has_more=has_more,
        total=_count_lines(file, last) if has_more else last,
        size=os.fstat(file.fileno()).st_size,
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


def _describe_page(page: _Page) -> str:
    total = "" if page.total is None else f" of {page.total}"
    return f"lines {page.first}-{page.last}{total}, {page.size} bytes"


def _more_notice(page: _Page) -> str:
    if not page.has_more:
        return ""
    if page.is_truncated:
        return f"\n[line {page.last} was cut: it is too long for a page; use a command to see the rest of it]"
    return f"\n[{_describe_page(page)} in the file; continue with offset={page.last + 1}]"
