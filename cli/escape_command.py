"""Commands as shown for approval: nothing in them is hidden, and none of their lines can pass for one of ours."""

import re

from tooling.safety.hidden_characters import escape_hidden

_CONTINUATION = "  │ "
# Longer commands do not fit a window together with the question below them.
_MAX_CHARS, _MAX_LINES = 1000, 12
_SPACES = re.compile(" {20,}")


def command_lines(command: str) -> list[str]:
    """Return all lines of a command, continuation lines behind a bar; a long command ends with its size."""
    lines = [_SPACES.sub(_count_spaces, escape_hidden(line)) for line in command.split("\n")]
    shown = [lines[0], *(f"{_CONTINUATION}{line}" for line in lines[1:])]
    return [*shown, size_note(len(lines), len(command))] if is_long_command(command) else shown


def is_long_command(command: str) -> bool:
    """Whether a command fills a window."""
    return command.count("\n") >= _MAX_LINES or len(command) > _MAX_CHARS


def size_note(lines: int, chars: int) -> str:
    """Return the last line of a long command."""
    extent = f"{lines:,} lines, " if lines > 1 else ""
    return f"  {extent}{chars:,} characters: scroll up to read from the start"


def _count_spaces(spaces: re.Match[str]) -> str:
    # A long run of spaces would push the rest of the command out of sight.
    return f" [{len(spaces[0])} spaces] "
