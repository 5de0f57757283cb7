"""What a person decides on, as it will be done: nothing in it is hidden, and no line of it can pass for one of ours."""

import re

from tooling.safety.shell.parse import has_invisible_characters

_CONTINUATION = "  │ "
# More does not fit a window together with what follows it.
_MAX_CHARS, _MAX_LINES = 1000, 12
_BLANKS = re.compile(" {20,}")


def escape(text: str) -> str:
    """Return a text on one line, every character that could hide something or move the cursor made visible."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(mark if _is_plain(mark) else mark.encode("unicode_escape").decode() for mark in text)


def command_lines(command: str) -> list[str]:
    """Return a command whole; its further lines stand behind a bar, and one that is long says so at its end."""
    lines = [_BLANKS.sub(_count_blanks, escape(line)) for line in command.split("\n")]
    shown = [lines[0], *(f"{_CONTINUATION}{line}" for line in lines[1:])]
    if len(lines) <= _MAX_LINES and len(command) <= _MAX_CHARS:
        return shown
    extent = f"{len(lines):,} lines, " if len(lines) > 1 else ""
    return [*shown, f"  that were {extent}{len(command):,} characters: scroll up and read from the beginning"]


def _is_plain(mark: str) -> bool:
    return mark.isprintable() and not has_invisible_characters(mark)


def _count_blanks(blanks: re.Match[str]) -> str:
    """Return how many blanks there are: so many push what follows them out of sight."""
    return f" [{len(blanks[0])} blanks] "
