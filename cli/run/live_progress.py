"""A run on a terminal: what is finished scrolls by on stderr, what is going on moves below it."""

import os
import sys
from collections.abc import Mapping

from agent.protocol.events import (
    Envelope,
)
from cli.run.progress import stderr_painted, wants_colour
from cli.screen.ascii_fallback import knows_unicode, without_unicode
from cli.screen.colors import Paint, ground
from cli.screen.live_area import LiveArea
from cli.screen.live_screen import LiveScreen
from cli.screen.transcript import Transcript


class LiveProgress:
    """The same transcript and live area as the REPL's, without a prompt; the answer itself goes to stdout."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        paint = Paint(has_colour=wants_colour(environ), theme=ground("auto", environ))
        self._paint = paint
        self._area = LiveArea(paint=paint)
        self._has_unicode = knows_unicode(environ)
        self._screen = LiveScreen(write=self._write, live=self._area.lines, size=_size)
        self._transcript = Transcript(write=self._screen.print, width=lambda: _size()[0], paint=paint)

    def show(self, envelope: Envelope) -> None:
        """Take in one event."""
        self._area.hear(envelope)
        self._transcript.hear(envelope)
        self._screen.refresh()

    def laid_out(self, answer: str) -> str:
        """Return Markdown as the prompt shows it."""
        from cli.screen.markdown import rendered

        text = rendered(answer, width=_size()[0], paint=self._paint).strip("\n")
        return text if self._has_unicode else without_unicode(text)

    def hold(self) -> None:
        """Leave the terminal to a question."""
        self._screen.hold()

    def go_on(self) -> None:
        """Take the terminal back."""
        self._screen.go_on()

    def close(self) -> None:
        """Show the rest."""
        self._screen.close()

    def _write(self, text: str) -> None:
        stderr_painted(text if self._has_unicode else without_unicode(text))


def _size() -> tuple[int, int]:
    try:
        columns, rows = os.get_terminal_size(sys.stderr.fileno())
    except OSError:
        columns, rows = 80, 24
    return columns or 80, rows or 24
