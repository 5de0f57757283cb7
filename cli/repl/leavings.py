"""What programs leave behind on a terminal they had for a while: noticed, and put right."""

import re

_KEPT_BYTES = 100_000
_SCREEN = re.compile(rb"\x1b\[\?(1049|1047|47)([hl])")
_LONGEST_SIGN = len(b"\x1b[?1049h")

# Colours, letters, cursor, wrapping, keypad, mouse and focus as is usual; all of the window scrolls; a line begins.
TIDY = b"".join(
    (
        b"\x1b[0m\x1b(B\x0f\x1b[?25h\x1b[?7h\x1b[?1l\x1b>",
        *(b"\x1b[?%dl" % mode for mode in (1000, 1002, 1003, 1004, 1006)),
        b"\x1b7\x1b[r\x1b8\r",
    )
)


class Written:
    """The newest part of what a program wrote, and whether it has gone to the terminal's other screen."""

    def __init__(self) -> None:
        self.kept = bytearray()
        self._screen = b""

    def take(self, data: bytes) -> None:
        """Take in what it writes."""
        self.kept.extend(data)
        for found in _SCREEN.finditer(self.kept[-len(data) - _LONGEST_SIGN :]):
            self._screen = found[1] if found[2] == b"h" else b""
        del self.kept[:-_KEPT_BYTES]

    def ending(self) -> bytes:
        """Return what brings the terminal back to its first screen, or to the beginning of a line."""
        if self._screen:
            return b"\x1b[?%bl" % self._screen
        return b"\r\n" if self.kept and not self.kept.endswith(b"\n") else b""
