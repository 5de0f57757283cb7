"""Escape sequences that draw, update and erase live lines, writing as little as possible."""

# A line that is wider than computed must be cut, not wrapped: wrapping would shift all other lines.
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
# Starts and ends in column 0. tmux treats erasing from the very first cell as clearing the screen,
# and saves a cleared screen to the scrollback.
ERASE_DOWN = "\x1b[K\x1b[C\x1b[J\x1b[D"


class LiveLines:
    """Live lines just above the cursor's row; every method returns the text to write."""

    def __init__(self) -> None:
        self.drawn: list[str] = []

    def draw(self, lines: list[str]) -> str:
        """Draw lines from the start of the cursor's row; the cursor ends in the row below them."""
        self.drawn = lines
        return f"{_NO_WRAP}{''.join(f'{line}{chr(13)}{chr(10)}' for line in lines)}{_WRAP}" if lines else ""

    def update(self, lines: list[str]) -> str:
        """Replace the drawn lines by as many others; the cursor starts and ends at the start of the first."""
        assert len(lines) == len(self.drawn)
        parts, row = [_NO_WRAP], 0
        for number, (before, after) in enumerate(zip(self.drawn, lines, strict=True)):
            if before != after:
                # Erase first: after a line that fills the row, the cursor is still on its last cell.
                parts.append(f"{cursor_down(number - row)}\r\x1b[K{after}")
                row = number
        self.drawn = lines
        return "".join([*parts, cursor_up(row), "\r", _WRAP])

    def erase(self) -> str:
        """Erase the lines and everything below; the cursor is in the row below them."""
        rows, self.drawn = len(self.drawn), []
        return f"\r{cursor_up(rows)}{ERASE_DOWN}"


def cursor_up(rows: int) -> str:
    return f"\x1b[{rows}A" if rows else ""


def cursor_down(rows: int) -> str:
    """Move the cursor down to column 0, scrolling at the bottom of the screen."""
    return "\r\n" * rows
