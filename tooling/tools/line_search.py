"""Search results as lines: parse the output of ripgrep, or search without it."""

import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolError
from tooling.files.openat2 import open_beneath
from tooling.files.regular_file import READ_FLAGS, text_reader
from tooling.files.resolve import open_to_read
from tooling.files.sensitive_files import is_sensitive_file
from tooling.output import decode_output
from tooling.tools.walk import MAX_ENTRIES, glob_regex, walk_files

_MAX_FILE_BYTES = 20_000_000
_LINE_NUMBER = rb"(\d+)([:-])"


class SearchLine(NamedTuple):
    """One line of a file: a match or context."""

    path: str
    number: int
    is_match: bool
    text: str


def parse_ripgrep_output(output: bytes) -> list[SearchLine]:
    """Parse the output of `rg --null --line-number`."""
    found: list[SearchLine] = []
    for line in output.split(b"\n"):
        name, nul, rest = line.partition(b"\0")
        number = re.match(_LINE_NUMBER, rest)
        if nul and number:
            path = os.fsdecode(name).removeprefix("./")
            text = decode_output(rest[number.end() :])
            found.append(SearchLine(path, int(number[1]), number[2] == b":", text))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search without ripgrep."""

    pattern: str
    glob: str | None
    ignore_case: bool
    context: int
    deadline: float


def search_by_walking(path: str, ctx: ExecCtx, search: Search) -> list[SearchLine]:
    """Search without ripgrep; stop soon after MAX_ENTRIES lines."""
    try:
        regex = re.compile(search.pattern, re.IGNORECASE if search.ignore_case else 0)
    except re.error as error:
        raise ToolError(f"The search failed: bad regular expression: {error}.") from error
    glob = None if search.glob is None else glob_regex(search.glob)
    root, target = open_to_read(path, ctx, READ_FLAGS)
    found: list[SearchLine] = []
    try:
        is_folder = stat.S_ISDIR(os.fstat(root).st_mode)
        for name in walk_files(root, deadline=search.deadline) if is_folder else (target.path.name,):
            if (glob is None or glob.match(name)) and not is_sensitive_file(name):
                data = _read_text(root, name if is_folder else None)
                found += _search_lines(data, name, regex, search.context)
            if len(found) > MAX_ENTRIES:
                break
    finally:
        os.close(root)
    return found


def _read_text(root: int, name: str | None) -> bytes:
    """Return the content of a file; binary, huge and unreadable files count as empty, as in ripgrep."""
    try:
        fd = os.dup(root) if name is None else open_beneath(root, name, READ_FLAGS)
        with text_reader(fd, name or "") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    except (OSError, ToolError):
        return b""
    return data if len(data) <= _MAX_FILE_BYTES else b""


def _search_lines(data: bytes, name: str, regex: re.Pattern[str], context: int) -> Iterator[SearchLine]:
    lines = decode_output(data).removesuffix("\n").split("\n") if data else []
    matches = {index for index, line in enumerate(lines) if regex.search(line)}
    shown = {
        near for match in matches for near in range(match - context, match + context + 1) if 0 <= near < len(lines)
    }
    for index in sorted(shown):
        yield SearchLine(name, index + 1, index in matches, lines[index].removesuffix("\r"))
