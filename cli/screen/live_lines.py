"""Live lines as they stand on a terminal: put, changed in place and taken away with as little writing as can be."""

import re

from rich.cells import cell_len

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# What is wider than we think must be cut by the terminal, not wrapped: a wrapped line would shift all others.
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
# From column 0, which it ends in. Erasing from the very first cell would be taken for clearing the screen by tmux,
# which keeps what it clears in the scrollback.
ERASE_DOWN = "\x1b[K\x1b[C\x1b[J\x1b[D"


class LiveLines:
    """Lines that stand just above the place where something else is written; returns what must be written for them."""

    def __init__(self) -> None:
        self.drawn: list[str] = []

    def put(self, lines: list[str]) -> str:
        """Draw lines from the beginning of the row the cursor is in; it ends in the row below them."""
        self.drawn = lines
        return f"{_NO_WRAP}{''.join(f'{line}{chr(13)}{chr(10)}' for line in lines)}{_WRAP}" if lines else ""

    def change(self, lines: list[str], *, below: int) -> str:
        """Draw as many lines as there are in their places; the cursor, `below` rows under them, ends in column 0."""
        assert len(lines) == len(self.drawn)
        parts, height = [_NO_WRAP], 0
        for number, (before, after) in enumerate(zip(self.drawn, lines, strict=True)):
            place = len(lines) + below - number
            if before != after:
                parts += [_moved(place - height), f"\r{after}\x1b[K"]
                height = place
        self.drawn = lines
        return "".join([*parts, _moved(-height), "\r", _WRAP])

    def take_away(self) -> str:
        """Remove the lines and whatever stands below; the cursor is in the row below them."""
        rows, self.drawn = len(self.drawn), []
        return f"\r{up(rows)}{ERASE_DOWN}"

    def rows(self, columns: int) -> int:
        """Return how many rows the lines fill in a window that breaks what has become too long for it."""
        return sum(rows_of(cells(line), columns) for line in self.drawn)


def rows_of(width: int, columns: int) -> int:
    """Return how many rows a line of some cells fills."""
    return max(1, -(-width // columns))


def cells(line: str) -> int:
    """Return how wide a painted line is."""
    return cell_len(_COLOUR.sub("", line))


def up(rows: int) -> str:
    """Move the cursor up."""
    return f"\x1b[{rows}A" if rows else ""


def _moved(rows: int) -> str:
    """Move the cursor up, or down by a negative number of rows, which never scrolls."""
    return f"\x1b[{-rows}B" if rows < 0 else up(rows)
