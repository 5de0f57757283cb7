"""A cursor that is drawn in the prompt while the terminal's own rests elsewhere."""

from collections.abc import Callable

from prompt_toolkit.application.current import get_app
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.layout.containers import AnyContainer, Container, to_container
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Char, Screen, WritePosition

_ABOVE_ALL = 1_000_000


class DrawnCursor(Container):
    """Shows its content, and the place of the cursor in it reversed whenever `is_needed` says so."""

    def __init__(self, content: AnyContainer, *, is_needed: Callable[[], bool]) -> None:
        self._content = to_container(content)
        self._is_needed = is_needed

    def reset(self) -> None:
        """Forget what was drawn."""
        self._content.reset()

    def preferred_width(self, max_available_width: int) -> Dimension:
        """Return the width of the content."""
        return self._content.preferred_width(max_available_width)

    def preferred_height(self, width: int, max_available_height: int) -> Dimension:
        """Return the height of the content."""
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
            screen.draw_with_z_index(_ABOVE_ALL, lambda: _reverse_cursor(screen))

    def get_children(self) -> list[Container]:
        """Return the content."""
        return [self._content]

    def get_key_bindings(self) -> KeyBindingsBase | None:
        """Add no keys."""
        return None


def _reverse_cursor(screen: Screen) -> None:
    place = screen.get_cursor_position(get_app().layout.current_window)
    cell = screen.data_buffer[place.y][place.x]
    screen.data_buffer[place.y][place.x] = Char(cell.char, f"{cell.style} reverse")
