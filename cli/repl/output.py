"""The terminal as prompt-toolkit writes to it: frames arrive whole, and nothing is asked of the terminal."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_SMALLEST = Size(rows=2, columns=10)


class FrameOutput(Vt100_Output):
    """Keeps back what is flushed inside `frame` and sends it as one synchronized update."""

    def __init__(self, *, term: str) -> None:
        # Without cursor queries nothing depends on how fast, or whether, a terminal answers.
        super().__init__(sys.stdout, _size, term=term, enable_cpr=False)
        self._is_synchronized = term not in ("dumb", "linux")
        self._depth = 0

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
        if self._is_synchronized:
            self._buffer = [_BEGIN, *self._buffer, _END]
        super().flush()


def _size() -> Size:
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        columns, rows = 80, 24
    # A window of no size is one that nobody has told about its size.
    return Size(rows=max(rows or 24, _SMALLEST.rows), columns=max(columns or 80, _SMALLEST.columns))
