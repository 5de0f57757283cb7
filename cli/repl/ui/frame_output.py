"""The terminal as prompt-toolkit writes to it: frames arrive whole, and nothing is asked of the terminal."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

from cli.screen.ascii_fallback import to_ascii
from cli.screen.live_lines import ERASE_DOWN

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_MIN_SIZE = Size(rows=2, columns=10)


class FrameOutput(Vt100_Output):
    """Keeps back what is flushed inside `frame` and sends it as one synchronized update."""

    def __init__(self, *, term: str, has_unicode: bool) -> None:
        # Without cursor queries nothing depends on how fast, or whether, a terminal answers.
        super().__init__(sys.stdout, self._available_size, term=term, enable_cpr=False)
        self._is_synchronized = term != "linux"
        self._has_unicode = has_unicode
        self._depth = 0
        self.reserved_rows = 0
        self.is_cursor_drawn = False

    @contextmanager
    def frame(self) -> Iterator[None]:
        """Hold back everything written inside, then show it at once."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self.flush()

    def flush(self) -> None:
        """Write what has gathered, unless a frame is being made."""
        if self._depth or not self._buffer:
            return
        text = "".join(self._buffer)
        text = text if self._has_unicode else to_ascii(text)
        self._buffer = [_BEGIN, text, _END] if self._is_synchronized else [text]
        # A terminal that is gone is no reason to fail: whoever closed it has sent a signal as well.
        with suppress(OSError):
            super().flush()

    def erase_down(self) -> None:
        """Erase all from the beginning of the row the cursor is in."""
        self.write_raw(ERASE_DOWN)

    def show_cursor(self) -> None:
        """Show the terminal's own cursor, unless it rests and another is drawn for it."""
        if not self.is_cursor_drawn:
            super().show_cursor()

    def window_size(self) -> Size:
        """Return the size of the window; one of no size is one that nobody has told about its size."""
        try:
            columns, rows = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            columns, rows = 0, 0
        return Size(rows=max(rows or 24, _MIN_SIZE.rows), columns=max(columns or 80, _MIN_SIZE.columns))

    def _available_size(self) -> Size:
        """Return what is left of the window for prompt-toolkit."""
        window = self.window_size()
        return Size(rows=max(1, window.rows - self.reserved_rows), columns=window.columns)


_TAIL_BYTES = 100_000
_SCREEN_SWITCH = re.compile(rb"\x1b\[\?(1049|1047|47)([hl])")
_MAX_SEQUENCE = len(b"\x1b[?1049h")

# Colours, letters, cursor, wrapping, keypad, mouse and focus as is usual; all of the window scrolls; a line begins.
RESET_TERMINAL = b"".join(
    (
        b"\x1b[0m\x1b(B\x0f\x1b[?25h\x1b[?7h\x1b[?1l\x1b>",
        *(b"\x1b[?%dl" % mode for mode in (1000, 1002, 1003, 1004, 1006)),
        b"\x1b7\x1b[r\x1b8\r",
    )
)


class CapturedOutput:
    """The newest part of what a program wrote, and whether it has gone to the terminal's other screen."""

    def __init__(self) -> None:
        self.tail = bytearray()
        self._alternate_screen = b""

    def feed(self, data: bytes) -> None:
        """Take in what it writes."""
        self.tail.extend(data)
        for found in _SCREEN_SWITCH.finditer(self.tail[-len(data) - _MAX_SEQUENCE :]):
            self._alternate_screen = found[1] if found[2] == b"h" else b""
        del self.tail[:-_TAIL_BYTES]

    def reset_sequence(self) -> bytes:
        """Return what brings the terminal back to its first screen, or to the beginning of a line."""
        if self._alternate_screen:
            return b"\x1b[?%bl" % self._alternate_screen
        return b"\r\n" if self.tail and not self.tail.endswith(b"\n") else b""
