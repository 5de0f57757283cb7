"""Lines that stay and lines that move, on a terminal nobody types on: finished ones scroll, live ones are redrawn."""

import asyncio
from collections.abc import Callable

_FRAME_S = 0.1
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"


class LiveScreen:
    """Writes finished lines above a few live ones; draws at most ten frames a second, and none while it is held."""

    def __init__(
        self,
        *,
        write: Callable[[str], None],
        live: Callable[[int, int], list[str]],
        size: Callable[[], tuple[int, int]],
    ) -> None:
        self._write = write
        self._live = live
        self._size = size
        self._finished: list[str] = []
        self._drawn = 0
        self._is_held = False
        self._last_frame = 0.0
        self._next_frame: asyncio.TimerHandle | None = None

    def print(self, lines: str) -> None:
        """Add finished lines."""
        self._finished.append(lines if lines.endswith("\n") else lines + "\n")
        self.refresh()

    def refresh(self) -> None:
        """Draw soon, however often this is called."""
        if self._next_frame is None and not self._is_held:
            loop = asyncio.get_running_loop()
            wait = max(0.0, self._last_frame + _FRAME_S - loop.time())
            self._next_frame = loop.call_later(wait, self._frame)

    def hold(self) -> None:
        """Show what is finished, take the live lines away, and leave the terminal to somebody else."""
        self._cancel()
        self._draw([])
        self._is_held = True

    def go_on(self) -> None:
        """Take the terminal back."""
        self._is_held = False
        self.refresh()

    def close(self) -> None:
        """Show the rest; nothing moves any more."""
        self.hold()

    def _cancel(self) -> None:
        if self._next_frame:
            self._next_frame.cancel()
            self._next_frame = None

    def _frame(self) -> None:
        self._next_frame = None
        self._last_frame = asyncio.get_running_loop().time()
        columns, rows = self._size()
        lines = self._live(columns, max(0, rows - 2))
        self._draw(lines)
        if lines:
            self.refresh()

    def _draw(self, lines: list[str]) -> None:
        if self._is_held or not (lines or self._drawn or self._finished):
            return
        finished, self._finished = "".join(self._finished), []
        back = f"\r\x1b[{self._drawn}A\x1b[J" if self._drawn else ""
        self._drawn = len(lines)
        self._write(f"{_BEGIN}{back}{finished}{''.join(line + chr(10) for line in lines)}{_END}")
