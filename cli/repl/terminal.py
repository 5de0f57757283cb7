"""The one owner of the terminal: finished lines go to the scrollback, a few live lines and the prompt stay below."""

import asyncio
from collections.abc import Callable

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.layout import ConditionalContainer, Float, FloatContainer, HSplit, Layout, VerticalAlign, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import AppendAutoSuggestion, BeforeInput
from prompt_toolkit.widgets import SearchToolbar

from cli.repl.output import FrameOutput

_FRAME_S = 0.1
_ESC_S = 0.2
_MENU_ROWS = 8
_PROMPT = "> "


class Terminal:
    """Shows the transcript, the live area and the prompt; draws at most ten frames a second on its own account."""

    def __init__(
        self,
        *,
        buffer: Buffer,
        live: Callable[[int, int], list[str]],
        status: Callable[[int], str],
        keys: KeyBindingsBase,
        term: str,
        is_vi: bool = False,
    ) -> None:
        self._live = live
        self._status = status
        self._output = FrameOutput(term=term)
        self._finished: list[str] = []
        self._last_frame = 0.0
        self._next_frame: asyncio.TimerHandle | None = None
        self._is_lent = False
        self._is_animated: Callable[[], bool] = lambda: False
        self.buffer = buffer
        self.app: Application[int] = Application(
            layout=self._layout(),
            key_bindings=keys,
            output=self._output,
            erase_when_done=True,
            editing_mode=EditingMode.VI if is_vi else EditingMode.EMACS,
            before_render=self._before_render,
        )
        # Esc alone means something here, so that is not waited for long.
        self.app.ttimeoutlen = self.app.timeoutlen = _ESC_S

    @property
    def columns(self) -> int:
        """Return how wide the window is."""
        return self._output.get_size().columns

    @property
    def rows(self) -> int:
        """Return how high the window is."""
        return self._output.get_size().rows

    async def run(self) -> int:
        """Show the prompt until somebody leaves; return the exit code."""
        # In place of the first prompt, and of what the terminal itself echoed of keys that came early.
        self._output.write_raw("\r")
        self._output.erase_down()
        exit_code = await self.app.run_async()
        self._show()
        return exit_code

    def print(self, lines: str) -> None:
        """Add finished lines to the scrollback."""
        self._finished.append(lines if lines.endswith("\n") else lines + "\n")
        self.refresh()

    async def lend(self, deed: Callable[[], None]) -> None:
        """Give the whole terminal to something else, in a thread; lines that come meanwhile wait."""
        self._show()
        self._is_lent = True
        try:
            await run_in_terminal(deed, in_executor=True)
        finally:
            self._is_lent = False
            self.refresh()

    def signal(self, sequence: str) -> None:
        """Send what is heard or shown elsewhere and leaves no mark on the screen."""
        if self.app.is_running and not self._is_lent:
            self._output.write_raw(sequence)
            self._output.flush()

    def animate(self, is_animated: Callable[[], bool]) -> None:
        """Draw ten frames a second for as long as something moves."""
        self._is_animated = is_animated
        self.refresh()

    def refresh(self) -> None:
        """Draw soon: not more often than ten times a second, however often it is called."""
        if self._next_frame is None:
            loop = asyncio.get_running_loop()
            wait = max(0.0, self._last_frame + _FRAME_S - loop.time())
            self._next_frame = loop.call_later(wait, self._frame)

    def _frame(self) -> None:
        self._next_frame = None
        self._last_frame = asyncio.get_running_loop().time()
        self._show()
        if self._is_animated():
            self.refresh()

    def _show(self) -> None:
        """Put finished lines above the live area and draw that anew, all in one frame."""
        if self._is_lent:
            return
        if not self.app.is_running:
            finished, self._finished = self._finished, []
            self._output.write_raw("".join(finished))
            self._output.flush()
            return
        with self._output.frame():
            if self._finished:
                finished, self._finished = self._finished, []
                self.app.renderer.erase()
                self._output.write_raw("".join(finished))
            self.app._redraw()

    def _before_render(self, app: Application[int]) -> None:
        """Begin afresh when less is to be shown than before: the renderer alone would leave empty lines."""
        size = self._output.get_size()
        screen = app.renderer.last_rendered_screen
        wanted = app.layout.container.preferred_height(size.columns, size.rows).preferred
        if screen is not None and screen.height > wanted:
            app.renderer.erase()

    def _layout(self) -> Layout:
        search = SearchToolbar()
        prompt = BufferControl(
            buffer=self.buffer,
            search_buffer_control=search.control,
            input_processors=[BeforeInput(_PROMPT, style="bold"), AppendAutoSuggestion()],
            preview_search=True,
        )
        body = HSplit(
            [
                Window(
                    FormattedTextControl(self._live_text, show_cursor=False),
                    dont_extend_height=True,
                    height=self._live_height,
                ),
                Window(prompt, wrap_lines=True, dont_extend_height=True),
                search,
                ConditionalContainer(Window(height=_MENU_ROWS), has_completions),
                ConditionalContainer(
                    Window(FormattedTextControl(self._status_text), height=1, dont_extend_height=True),
                    ~has_completions & Condition(lambda: bool(self._status(self.columns))),
                ),
            ],
            align=VerticalAlign.TOP,
        )
        menu = Float(CompletionsMenu(max_height=_MENU_ROWS, scroll_offset=1), xcursor=True, ycursor=True)
        return Layout(FloatContainer(body, [menu]), focused_element=prompt)

    def _lines(self) -> list[str]:
        # The prompt and the status need their room; the live area gets what is left of the window.
        return self._live(self.columns, max(0, self.rows - 4))

    def _live_text(self) -> AnyFormattedText:
        return ANSI("\n".join(self._lines()))

    def _live_height(self) -> int:
        return len(self._lines())

    def _status_text(self) -> AnyFormattedText:
        return ANSI(self._status(self.columns))
