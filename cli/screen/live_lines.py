"""Live lines as they stand on a terminal: put, changed in place and taken away with as little writing as can be."""

# What is wider than we think must be cut by the terminal, not wrapped: a wrapped line would shift all others.
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
# From column 0, which it ends in. Erasing from the very first cell would be taken for clearing the screen by tmux,
# which keeps what it clears in the scrollback.
ERASE_DOWN = "\x1b[K\x1b[C\x1b[J\x1b[D"


class LiveLines:
    """Lines that stand just above the place where something else is written; returns what must be written for them."""

    def __init__(self) -> None:
        self.drawn: list[str] = []

    def draw(self, lines: list[str]) -> str:
        """Draw lines from the beginning of the row the cursor is in; it ends in the row below them."""
        self.drawn = lines
        return f"{_NO_WRAP}{''.join(f'{line}{chr(13)}{chr(10)}' for line in lines)}{_WRAP}" if lines else ""

    def update(self, lines: list[str]) -> str:
        """Draw as many lines as there are in their places; the cursor begins and ends where the first of them does."""
        assert len(lines) == len(self.drawn)
        parts, row = [_NO_WRAP], 0
        for number, (before, after) in enumerate(zip(self.drawn, lines, strict=True)):
            if before != after:
                # Erased first: behind a line that fills the row the cursor is still on its last cell.
                parts.append(f"{cursor_down(number - row)}\r\x1b[K{after}")
                row = number
        self.drawn = lines
        return "".join([*parts, cursor_up(row), "\r", _WRAP])

    def erase(self) -> str:
        """Remove the lines and whatever stands below; the cursor is in the row below them."""
        rows, self.drawn = len(self.drawn), []
        return f"\r{cursor_up(rows)}{ERASE_DOWN}"


def cursor_up(rows: int) -> str:
    """Move the cursor up."""
    return f"\x1b[{rows}A" if rows else ""


def cursor_down(rows: int) -> str:
    """Move the cursor down to column 0, with rows added at the bottom if there are too few: `up` is its opposite."""
    return "\r\n" * rows
