"""A terminal without a prompt: finished lines scroll by, live lines are redrawn below them."""

import asyncio
from collections.abc import Callable

from cli.screen.live_lines import ERASE_DOWN, LiveLines, cursor_up

_FRAME_S = 0.1
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"


class LiveScreen:
    """Writes finished lines above live ones; draws at most ten frames a second, and none while paused.

    The cursor stays at the start of the live lines: however a resized window has wrapped or cut them, all of them
    are below it.
    """

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
        self._drawn_size = (0, 0)
        self._lines = LiveLines()
        self._finished: list[tuple[str, Callable[[str], None]]] = []
        self._is_paused = False
        self._last_frame = 0.0
        self._next_frame: asyncio.TimerHandle | None = None

    def print(self, lines: str, write: Callable[[str], None] | None = None) -> None:
        """Add finished lines; `write` sends them to another stream of the same terminal."""
        self._finished.append((lines if lines.endswith("\n") else lines + "\n", write or self._write))
        self.refresh()

    def refresh(self, *, is_urgent: bool = False) -> None:
        """Schedule a frame; calls before it is drawn have no effect. An urgent one is drawn at once."""
        if self._is_paused:
            return
        if self._next_frame and is_urgent:
            self._next_frame.cancel()
            self._next_frame = None
        if self._next_frame is None:
            loop = asyncio.get_running_loop()
            wait = 0.0 if is_urgent else max(0.0, self._last_frame + _FRAME_S - loop.time())
            self._next_frame = loop.call_later(wait, self._frame)

    def pause(self) -> None:
        """Print finished lines, erase the live ones and stop drawing."""
        if self._next_frame:
            self._next_frame.cancel()
            self._next_frame = None
        self._draw([])
        self._is_paused = True

    def resume(self) -> None:
        """Reclaim the terminal."""
        self._is_paused = False
        self.refresh()

    def close(self) -> None:
        """Print the remaining lines and stop drawing."""
        self._is_paused = False
        self.pause()

    def _frame(self) -> None:
        self._next_frame = None
        self._last_frame = asyncio.get_running_loop().time()
        columns, rows = self._size()
        lines = self._live(columns, max(0, rows - 2))
        self._draw(lines)
        if lines:
            self.refresh()

    def _draw(self, lines: list[str]) -> None:
        if self._is_paused:
            return
        before, size = self._lines.drawn, self._size()
        if self._finished or len(lines) != len(before) or size != self._drawn_size:
            erased = ERASE_DOWN if before else ""
            text = f"{self._write_finished(erased)}{self._lines.draw(lines)}{cursor_up(len(lines))}"
        elif lines != before:
            text = self._lines.update(lines)
        else:
            return
        self._drawn_size = size
        self._write_frame(text)

    def _write_finished(self, text: str) -> str:
        """Write finished lines as far as another stream requires it; return the text that is still to be written."""
        finished, self._finished = self._finished, []
        for lines, write in finished:
            if write is self._write:
                text += lines
            else:
                self._write_frame(text)
                write(lines)
                text = ""
        return text

    def _write_frame(self, text: str) -> None:
        if text:
            self._write(f"{_BEGIN}{text}{_END}")
