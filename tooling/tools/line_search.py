"""Search results as lines: parse the output of ripgrep, or search without it."""

import os
import re
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolError
from tooling.files.openat2 import open_beneath
from tooling.files.regular_file import READ_FLAGS, text_reader
from tooling.files.resolve import open_to_read
from tooling.files.sensitive_files import is_sensitive_file
from tooling.files.workspace_paths import own_prefixes
from tooling.output import decode_output
from tooling.tools.walk import check_deadline, glob_regex, path_order, walk_files

_MAX_FILE_BYTES = 20_000_000
_LINES_PER_CLOCK_CHECK = 10_000
MAX_LINES = 20_000
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
    # The lines of one file are in order already, and the sort is stable.
    return sorted(found, key=lambda line: path_order(line.path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search without ripgrep."""

    pattern: str
    glob: str | None
    ignore_case: bool
    context: int
    deadline: float


def search_by_walking(path: str, ctx: ExecCtx, search: Search) -> tuple[list[SearchLine], bool]:
    """Search without ripgrep; return the lines, and whether they are complete: the search stops after MAX_LINES."""
    try:
        regex = re.compile(search.pattern, re.IGNORECASE if search.ignore_case else 0)
    except re.error as error:
        raise ToolError(f"The search failed: bad regular expression: {error}.") from error
    glob = None if search.glob is None else glob_regex(search.glob)
    root, target = open_to_read(path, ctx, READ_FLAGS)
    found: list[SearchLine] = []
    own = own_prefixes(target.path, ctx)
    try:
        is_folder = stat.S_ISDIR(os.fstat(root).st_mode)
        for name in walk_files(root, deadline=search.deadline) if is_folder else (target.path.name,):
            if (glob is None or glob.match(name)) and not is_sensitive_file(name) and not name.startswith(own):
                found += islice(_search_file(root, name, regex, search, is_folder=is_folder), MAX_LINES)
            if len(found) >= MAX_LINES:
                return found, False
    finally:
        os.close(root)
    return found, True


def _search_file(
    root: int, name: str, regex: re.Pattern[str], search: Search, *, is_folder: bool
) -> Iterator[SearchLine]:
    """Yield the lines of one file. In a folder, binary, huge and unreadable files are skipped, as in ripgrep."""
    try:
        fd = open_beneath(root, name, READ_FLAGS) if is_folder else os.dup(root)
        file = text_reader(fd, name)
    except (OSError, ToolError):
        return
    with file:
        if not is_folder or os.fstat(file.fileno()).st_size <= _MAX_FILE_BYTES:
            yield from _search_lines(file, name, regex, search)


def _search_lines(file: Iterable[bytes], name: str, regex: re.Pattern[str], search: Search) -> Iterator[SearchLine]:
    before: deque[SearchLine] = deque(maxlen=search.context)
    remaining = 0
    for number, data in enumerate(file, 1):
        if number % _LINES_PER_CLOCK_CHECK == 0:
            check_deadline(search.deadline)
        text = decode_output(data.removesuffix(b"\n"))
        line = SearchLine(name, number, regex.search(text) is not None, text.removesuffix("\r"))
        if line.is_match:
            yield from before
            before.clear()
            remaining = search.context
            yield line
        elif remaining:
            remaining -= 1
            yield line
        else:
            before.append(line)
