"""The part of the screen drawn by prompt-toolkit: prompt, completions and status."""

import select
import sys
from collections.abc import Callable

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.key_binding.key_processor import KeyProcessor
from prompt_toolkit.layout import ConditionalContainer, Float, FloatContainer, HSplit, Layout, VerticalAlign, Window
from prompt_toolkit.layout.containers import AnyContainer, Container, to_container
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.processors import AppendAutoSuggestion
from prompt_toolkit.layout.screen import Char, Screen, WritePosition
from prompt_toolkit.output import ColorDepth

from cli.repl.ui.frame_output import FrameOutput

_TOP_Z_INDEX = 1_000_000


class DrawnCursor(Container):
    """Wraps a container and draws a reversed cell as the cursor while `is_needed` returns True."""

    def __init__(self, content: AnyContainer, *, is_needed: Callable[[], bool]) -> None:
        self._content = to_container(content)
        self._is_needed = is_needed

    def reset(self) -> None:
        self._content.reset()

    def preferred_width(self, max_available_width: int) -> Dimension:
        return self._content.preferred_width(max_available_width)

    def preferred_height(self, width: int, max_available_height: int) -> Dimension:
        return self._content.preferred_height(width, max_available_height)

    def write_to_screen(
        self,
        screen: Screen,
        mouse_handlers: MouseHandlers,
        write_position: WritePosition,
        parent_style: str,
        erase_bg: bool,  # noqa: FBT001 (the library's signature)
        z_index: int | None,
    ) -> None:
        """Draw the content, then the cursor on top of it."""
        self._content.write_to_screen(screen, mouse_handlers, write_position, parent_style, erase_bg, z_index)
        if self._is_needed():
            screen.draw_with_z_index(_TOP_Z_INDEX, lambda: _reverse_cursor(screen))

    def get_children(self) -> list[Container]:
        return [self._content]

    def get_key_bindings(self) -> KeyBindingsBase | None:
        return None


def _reverse_cursor(screen: Screen) -> None:
    cursor = screen.get_cursor_position(get_app().layout.current_window)
    cell = screen.data_buffer[cursor.y][cursor.x]
    screen.data_buffer[cursor.y][cursor.x] = Char(cell.char, f"{cell.style} reverse")


_ESC_TIMEOUT_S = 0.1
_MENU_ROWS = 8
_MIN_ROWS_FOR_STATUS = 4
_PROMPT = "> "


def _line_prefix(line: int, wrapped: int) -> AnyFormattedText:
    """Return the prefix of a line; wrapped rows have none, so that the text can be copied."""
    if wrapped:
        return ""
    return [("", " " * len(_PROMPT))] if line else [("bold", _PROMPT)]


class PromptArea(Application[int]):
    """The application below the live lines: every redraw is one frame; `on_resize` handles a new window size."""

    def __init__(
        self,
        *,
        buffer: Buffer,
        output: FrameOutput,
        status: Callable[[int], str],
        keys: KeyBindingsBase,
        is_vi: bool,
        has_color: bool,
        before_render: Callable[[], None],
        after_render: Callable[[], None],
        on_resize: Callable[[], None],
    ) -> None:
        self._frames = output
        self._status = status
        self._resize_callback = on_resize
        self._painted_status: tuple[str, ANSI] = ("", ANSI(""))
        super().__init__(
            layout=self._build_layout(buffer),
            key_bindings=keys,
            output=output,
            erase_when_done=True,
            editing_mode=EditingMode.VI if is_vi else EditingMode.EMACS,
            color_depth=None if has_color else ColorDepth.DEPTH_1_BIT,
            before_render=lambda _: before_render(),
            after_render=lambda _: after_render(),
            # SIGWINCH is enough; polling would only cost CPU.
            terminal_size_polling_interval=None,
        )
        # Esc alone is bound, so do not wait long for a sequence.
        self.ttimeoutlen = _ESC_TIMEOUT_S
        self.is_typed_ahead = bool(select.select([sys.stdin], [], [], 0)[0])
        self.key_processor.after_key_press += self._after_key_press

    @property
    def cursor_position(self) -> tuple[int, int]:
        """Column and row of the cursor, relative to the start of the area."""
        cursor = self.renderer._cursor_pos
        return cursor.x, cursor.y

    @property
    def drawn_rows(self) -> int:
        """Number of rows it occupies on the screen."""
        screen = self.renderer.last_rendered_screen
        return screen.height if screen else 0

    def preferred_rows(self) -> int:
        """Return how many rows the content needs, at most those of the window."""
        window = self._frames.window_size()
        wanted = self.layout.container.preferred_height(window.columns, window.rows).preferred
        return min(wanted, window.rows)

    def widths_above_cursor(self) -> list[int]:
        """Return the widths, in cells, of the rows above the cursor."""
        screen = self.renderer.last_rendered_screen
        if screen is None:
            return []
        rows = [screen.data_buffer[number] for number in range(self.cursor_position[1])]
        return [max((column for column, cell in row.items() if cell.char != " "), default=-1) + 1 for row in rows]

    def draw(self) -> None:
        """Redraw immediately."""
        self._redraw()

    def _redraw(self, render_as_done: bool = False) -> None:  # noqa: FBT001, FBT002 (the library's signature)
        with self._frames.frame():
            super()._redraw(render_as_done)

    def _after_key_press(self, processor: KeyProcessor) -> None:
        self.is_typed_ahead = self.is_typed_ahead and bool(processor.input_queue)

    def _on_resize(self) -> None:
        self._resize_callback()

    def _build_layout(self, buffer: Buffer) -> Layout:
        prompt = BufferControl(buffer=buffer, input_processors=[AppendAutoSuggestion()])
        status = Condition(lambda: self._frames.window_size().rows >= _MIN_ROWS_FOR_STATUS)
        body = HSplit(
            [
                Window(
                    prompt,
                    wrap_lines=True,
                    dont_extend_height=True,
                    height=self._prompt_height,
                    get_line_prefix=_line_prefix,
                ),
                ConditionalContainer(Window(height=Dimension(min=0, preferred=_MENU_ROWS)), has_completions),
                ConditionalContainer(
                    Window(FormattedTextControl(self._status_text), height=1, dont_extend_height=True),
                    ~has_completions & status,
                ),
            ],
            align=VerticalAlign.TOP,
        )
        menu = Float(CompletionsMenu(max_height=_MENU_ROWS, scroll_offset=1), xcursor=True, ycursor=True)
        root = DrawnCursor(FloatContainer(body, [menu]), is_needed=lambda: self._frames.is_cursor_drawn)
        return Layout(root, focused_element=prompt)

    def _prompt_height(self) -> Dimension:
        # A long text scrolls inside its part of the window, so that the live lines above stay visible.
        return Dimension(min=1, max=max(1, self._frames.window_size().rows * 2 // 3))

    def _status_text(self) -> AnyFormattedText:
        text = self._status(self._frames.window_size().columns)
        if text != self._painted_status[0]:
            self._painted_status = (text, ANSI(text))
        return self._painted_status[1]
