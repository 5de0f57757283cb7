"""Lines found in files, whoever searched."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tooling.contract.result import TIMED_OUT, ToolError
from tooling.output import decode_output
from tooling.tools.regular_file import open_regular
from tooling.tools.walk import MAX_ENTRIES, glob_regex, walk_files

_MAX_FILE_BYTES = 20_000_000
_NUMBERED = rb"(\d+)([:-])"


class FoundLine(NamedTuple):
    """One line of a file: a match, or a neighbour of one."""

    path: str
    number: int
    is_match: bool
    text: str


def in_ripgrep_output(output: bytes) -> list[FoundLine]:
    """Read what ripgrep printed with file names ended by NUL."""
    found: list[FoundLine] = []
    for line in output.split(b"\n"):
        name, nul, rest = line.partition(b"\0")
        number = re.match(_NUMBERED, rest)
        if nul and number:
            path = os.fsdecode(name).removeprefix("./")
            text = decode_output(rest[number.end() :])
            found.append(FoundLine(path, int(number[1]), number[2] == b":", text))
    return found


def in_walk(
    root: Path, pattern: str, *, glob: str | None, ignore_case: bool, context: int, deadline: float
) -> list[FoundLine]:
    """Search without ripgrep; stops soon after the first MAX_ENTRIES lines."""
    try:
        regex = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        raise ToolError(f"The search failed: bad regular expression: {error}.") from error
    wanted = None if glob is None else glob_regex(glob)
    found: list[FoundLine] = []
    for name in _names(root, deadline):
        if wanted is not None and not wanted.match(name):
            continue
        if time.monotonic() > deadline:
            raise ToolError("The search took too long; narrow the path.", status="timeout", exit_code=TIMED_OUT)
        found += _in_file(root if root.is_file() else root / name, name, regex, context)
        if len(found) > MAX_ENTRIES:
            break
    return found


def _names(root: Path, deadline: float) -> Iterator[str]:
    return iter((root.name,)) if root.is_file() else walk_files(root, deadline=deadline)


def _in_file(path: Path, name: str, regex: re.Pattern[str], context: int) -> Iterator[FoundLine]:
    try:
        with open_regular(path, name) as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    except ToolError:
        # Binary and unreadable files are passed over, as ripgrep does.
        return
    if len(data) > _MAX_FILE_BYTES:
        return
    lines = decode_output(data).removesuffix("\n").split("\n")
    hits = {index for index, line in enumerate(lines) if regex.search(line)}
    around = {near for hit in hits for near in range(hit - context, hit + context + 1) if 0 <= near < len(lines)}
    for index in sorted(around):
        yield FoundLine(name, index + 1, index in hits, lines[index].removesuffix("\r"))
