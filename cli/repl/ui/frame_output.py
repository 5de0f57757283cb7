"""Terminal output: atomic frames for prompt-toolkit, and the reset after other programs."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

from cli.screen.ascii_fallback import to_ascii
from cli.screen.live_lines import ERASE_DOWN
from tooling.contract.lazy_pattern import lazy_pattern

_BEGIN_SYNC, _END_SYNC = "\x1b[?2026h", "\x1b[?2026l"
_MIN_SIZE = Size(rows=2, columns=10)


class FrameOutput(Vt100_Output):
    """Buffers everything flushed inside `frame` and writes it as one synchronized update."""

    def __init__(self, *, term: str, has_unicode: bool) -> None:
        # Without cursor position queries nothing depends on how fast, or whether, a terminal replies.
        super().__init__(sys.stdout, self._available_size, term=term, enable_cpr=False)
        self._is_synchronized = term != "linux"
        self._has_unicode = has_unicode
        self._depth = 0
        self.reserved_rows = 0
        self.is_cursor_drawn = False

    @contextmanager
    def frame(self) -> Iterator[None]:
        """Buffer everything written inside and flush it at the end."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self.flush()

    def flush(self) -> None:
        """Write the buffer, unless inside a frame."""
        if self._depth or not self._buffer:
            return
        text = "".join(self._buffer)
        text = text if self._has_unicode else to_ascii(text)
        self._buffer = [_BEGIN_SYNC, text, _END_SYNC] if self._is_synchronized else [text]
        # If the terminal is gone, SIGHUP ends the program; writing need not fail.
        with suppress(OSError):
            super().flush()

    def erase_down(self) -> None:
        """Erase from the start of the cursor's row to the end of the screen."""
        self.write_raw(ERASE_DOWN)

    def show_cursor(self) -> None:
        """Show the terminal's cursor, unless it is parked and a drawn one replaces it."""
        if not self.is_cursor_drawn:
            super().show_cursor()

    def window_size(self) -> Size:
        """Return the size of the window; 80x24 if the terminal reports none."""
        try:
            columns, rows = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            columns, rows = 0, 0
        return Size(rows=max(rows or 24, _MIN_SIZE.rows), columns=max(columns or 80, _MIN_SIZE.columns))

    def _available_size(self) -> Size:
        """Return the part of the window that is left to prompt-toolkit."""
        window = self.window_size()
        return Size(rows=max(1, window.rows - self.reserved_rows), columns=window.columns)


_TAIL_BYTES = 100_000
_SCREEN_SWITCH = lazy_pattern(rb"\x1b\[\?(1049|1047|47)([hl])")
_MAX_SEQUENCE = len(b"\x1b[?1049h")

# Default colors, charset, cursor, wrapping, keypad, mouse and focus modes; full scroll region; column 0.
RESET_TERMINAL = b"".join(
    (
        b"\x1b[0m\x1b(B\x0f\x1b[?25h\x1b[?7h\x1b[?1l\x1b>",
        *(b"\x1b[?%dl" % mode for mode in (1000, 1002, 1003, 1004, 1006)),
        b"\x1b7\x1b[r\x1b8\r",
    )
)


class CapturedOutput:
    """The end of a program's output, and whether it left the terminal on the alternate screen."""

    def __init__(self) -> None:
        self.tail = bytearray()
        self._alternate_screen = b""

    def feed(self, data: bytes) -> None:
        self.tail.extend(data)
        for match in _SCREEN_SWITCH.finditer(self.tail[-len(data) - _MAX_SEQUENCE :]):
            self._alternate_screen = match[1] if match[2] == b"h" else b""
        del self.tail[:-_TAIL_BYTES]

    def reset_sequence(self) -> bytes:
        """Return the bytes that leave the alternate screen, or end an unfinished line."""
        if self._alternate_screen:
            return b"\x1b[?%bl" % self._alternate_screen
        return b"\r\n" if self.tail and not self.tail.endswith(b"\n") else b""
