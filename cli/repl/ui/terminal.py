"""Owns the terminal: finished lines go to the scrollback, live lines and the prompt stay below."""

import asyncio
from collections.abc import Callable

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.key_binding import KeyBindingsBase

from cli.repl.ui.frame_output import FrameOutput
from cli.repl.ui.layout import PromptArea
from cli.screen.live_lines import LiveLines, cursor_down, cursor_up
from tooling.contract.fast_dataclass import dataclass

_FRAME_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalCapabilities:
    """Features of the terminal; `reflows_lines` if it rewraps lines when its window becomes narrower."""

    term: str
    has_color: bool = True
    has_unicode: bool = True
    reflows_lines: bool = False


class Terminal:
    """Draws transcript, live lines and prompt, at most ten frames per second."""

    def __init__(
        self,
        *,
        buffer: Buffer,
        live_lines: Callable[[int, int], list[str]],
        status: Callable[[int], str],
        keys: KeyBindingsBase,
        capabilities: TerminalCapabilities,
        is_vi: bool = False,
        is_animating: Callable[[], bool],
        on_drawn: Callable[[], None],
    ) -> None:
        self._live_lines = live_lines
        self._status = status
        self._is_animating = is_animating
        self._on_drawn = on_drawn
        self._reflows_lines = capabilities.reflows_lines
        self._output = FrameOutput(term=capabilities.term, has_unicode=capabilities.has_unicode)
        self._size = self._output.window_size()
        self._lines = LiveLines()
        self._finished: list[str] = []
        self._shown_status = ""
        self._last_frame = 0.0
        self._next_frame: asyncio.TimerHandle | None = None
        self._external_lock = asyncio.Lock()
        self._is_external_running = False
        self._is_exited = False
        self._is_cursor_parked = False
        self._area = PromptArea(
            buffer=buffer,
            output=self._output,
            status=status,
            keys=keys,
            is_vi=is_vi,
            has_color=capabilities.has_color,
            before_render=self._before_render,
            after_render=self._park_cursor,
            on_resize=self._render,
        )

    @property
    def columns(self) -> int:
        return self._output.window_size().columns

    @property
    def rows(self) -> int:
        return self._output.window_size().rows

    @property
    def is_external_running(self) -> bool:
        """Whether an external program owns the terminal."""
        return self._is_external_running

    @property
    def is_typed_ahead(self) -> bool:
        """Whether the current key was pressed before the prompt was ready."""
        return self._area.is_typed_ahead

    async def run(self) -> int:
        """Show the prompt until `exit`; return the exit code."""
        # Overwrite the early prompt and any keys the terminal echoed before we started.
        self._output.write_raw("\r")
        self._output.erase_down()
        try:
            return await self._area.run_async(set_exception_handler=False)
        finally:
            self._write(self._lines.erase() if self._lines.drawn else "")
            self._show_cursor()
            self._is_exited = True
            self._render()

    def exit(self, exit_code: int) -> None:
        if self._area.is_running and not self._area.is_done:
            self._area.exit(result=exit_code)

    def close(self) -> None:
        """Write the lines that were printed after the prompt was closed."""
        self._render()

    def print(self, lines: str) -> None:
        """Add finished lines to the scrollback."""
        self._finished.append(lines if lines.endswith("\n") else lines + "\n")
        self.refresh()

    async def run_external(self, program: Callable[[], None]) -> None:
        """Call `program` in a thread while it owns the terminal; lines printed meanwhile are deferred."""
        async with self._external_lock:
            if self._is_exited:
                return
            self._render()
            with self._output.frame():
                self._erase()
                self._show_cursor()
            self._is_external_running = True
            try:
                await run_in_terminal(program, in_executor=True)
            finally:
                self._is_external_running = False
                self.refresh()

    def send_sequence(self, sequence: str) -> None:
        """Send an escape sequence that leaves no mark on the screen, such as the bell."""
        if not self._is_external_running:
            self._write(sequence)

    def clear(self) -> None:
        """Clear the window; its content stays in the scrollback."""
        with self._output.frame():
            self._erase()
            self._write("\n" * self._output.window_size().rows + "\x1b[H")
            self._render()

    def refresh(self, *, is_urgent: bool = False) -> None:
        """Schedule a redraw, at most ten times per second; an urgent one is drawn at once."""
        if self._next_frame and is_urgent:
            self._next_frame.cancel()
            self._next_frame = None
        if self._next_frame is None:
            loop = asyncio.get_running_loop()
            wait = 0.0 if is_urgent else max(0.0, self._last_frame + _FRAME_S - loop.time())
            self._next_frame = loop.call_later(wait, self._frame)

    def _frame(self) -> None:
        self._next_frame = None
        self._last_frame = asyncio.get_running_loop().time()
        self._render()
        if self._is_animating() and not self._is_exited:
            self.refresh()

    def _render(self) -> None:
        """Write finished lines above the live ones and redraw what has changed, in one frame."""
        if self._is_external_running:
            return
        if not self._area.is_running:
            self._write(self._pop_finished())
            return
        with self._output.frame():
            self._handle_resize()
            window = self._size
            lines = self._live_lines(window.columns, max(0, window.rows - max(self._area.drawn_rows, 2)))
            if self._finished or len(lines) != len(self._lines.drawn) or not self._area.drawn_rows:
                self._erase()
                self._write(self._pop_finished())
                self._draw_lines(lines)
                self._draw_area()
            elif lines != self._lines.drawn:
                self._write(self._lines.update(lines))
            if self._status(window.columns) != self._shown_status:
                self._draw_area()
        self._on_drawn()

    def _handle_resize(self) -> None:
        """Erase the live lines and the prompt after a resize, wherever it moved them."""
        window = self._output.window_size()
        if window == self._size:
            return
        self._size = window
        if not self._is_cursor_parked:
            column, rows = self._area.cursor_position
            if self._reflows_lines:
                above = sum(max(1, -(-width // window.columns)) for width in self._area.widths_above_cursor())
                rows = above + column // window.columns
            self._write(f"\r{cursor_up(len(self._lines.drawn) + rows)}")
        self._erase_below()

    def _before_render(self) -> None:
        """Make room if the prompt has grown; redraw it if it has shrunk, or empty lines would remain."""
        self._handle_resize()
        self._restore_cursor()
        wanted = self._area.preferred_rows()
        room = self._size.rows - wanted
        if len(self._lines.drawn) > room:
            lines = self._live_lines(self._size.columns, room)[:room]
            self._erase()
            self._draw_lines(lines)
        elif self._area.drawn_rows > wanted:
            self._area.renderer.erase()

    def _park_cursor(self) -> None:
        """Move the cursor to the start of the live lines, if there are any.

        A terminal keeps the cursor at its character when a resize rewraps or clips lines. So everything from the
        cursor on can be erased after a resize, and no finished line is erased with it.
        """
        if not self._lines.drawn or self._area.is_done:
            return
        _, row = self._area.cursor_position
        self._output.hide_cursor()
        self._write(f"\r{cursor_up(len(self._lines.drawn) + row)}")
        self._is_cursor_parked = True

    def _restore_cursor(self) -> None:
        """Move the cursor back to the prompt."""
        if self._is_cursor_parked:
            column, row = self._area.cursor_position
            self._write(cursor_down(len(self._lines.drawn) + row))
            self._output.cursor_forward(column)
            self._is_cursor_parked = False

    def _show_cursor(self) -> None:
        self._output.is_cursor_drawn = False
        self._output.show_cursor()
        self._output.flush()

    def _erase(self) -> None:
        if self._is_cursor_parked:
            self._erase_below()
        else:
            self._area.renderer.erase()
            self._write(self._lines.erase())
            self._output.reserved_rows = 0

    def _erase_below(self) -> None:
        self._output.erase_down()
        self._lines.drawn, self._output.reserved_rows = [], 0
        self._area.renderer.reset()
        self._is_cursor_parked = False

    def _draw_lines(self, lines: list[str]) -> None:
        self._write(self._lines.draw(lines))
        self._output.reserved_rows = len(lines)
        self._output.is_cursor_drawn = bool(lines)

    def _draw_area(self) -> None:
        self._shown_status = self._status(self._size.columns)
        self._area.draw()

    def _pop_finished(self) -> str:
        finished, self._finished = self._finished, []
        return "".join(finished)

    def _write(self, text: str) -> None:
        if text:
            self._output.write_raw(text)
            self._output.flush()
