"""Live progress on a terminal: finished lines scroll by on stderr, running steps are redrawn below them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from agent.protocol.envelope import Envelope
from cli.run.progress import stderr_size, wants_color, write_stderr_raw
from cli.screen.ascii_fallback import supports_unicode, to_ascii
from cli.screen.colors import Paint, resolve_theme
from cli.screen.links import link_writer
from cli.screen.live_area import LiveArea
from cli.screen.live_screen import LiveScreen
from cli.screen.transcript import Transcript


class LiveProgress:
    """The REPL's transcript and live area without a prompt.

    With `write_answer`, the model's text is rendered and passed on as it arrives, between the lines on stderr.
    """

    def __init__(self, environ: Mapping[str, str], *, write_answer: Callable[[str], None] | None = None) -> None:
        paint = Paint(has_color=wants_color(environ), theme=resolve_theme("auto", environ))
        self._paint = paint
        self._area = LiveArea(paint=paint, stop_key="Ctrl-C")
        self._has_unicode = supports_unicode(environ)
        self._screen = LiveScreen(write=self._write, live=self._live_lines, size=stderr_size)
        self._write_answer = write_answer
        self._add_links = link_writer(environ, Path.cwd(), lambda: stderr_size()[0])
        self._transcript = Transcript(
            write=lambda text: self._screen.print(self._add_links(text)),
            width=lambda: stderr_size()[0],
            paint=paint,
            markdown=self.render_answer if write_answer else None,
            write_answer=self._print_answer if write_answer else None,
        )

    def on_event(self, envelope: Envelope) -> None:
        """Update the live area and the transcript."""
        was_silent = not self._transcript.partial_answer
        self._area.on_event(envelope)
        self._transcript.on_event(envelope)
        self._screen.refresh(is_urgent=was_silent and bool(self._transcript.partial_answer))

    def render_answer(self, answer: str) -> str:
        """Render Markdown as the REPL does."""
        from cli.screen.markdown import render_markdown

        text = render_markdown(answer, width=stderr_size()[0], paint=self._paint).strip("\n")
        return self._add_links(text if self._has_unicode else to_ascii(text))

    def pause(self) -> None:
        """Release the terminal for a prompt."""
        self._screen.pause()

    def resume(self) -> None:
        """Reclaim the terminal."""
        self._screen.resume()

    def close(self) -> None:
        """Draw the remaining lines and stop."""
        self._screen.close()

    def _live_lines(self, width: int, height: int) -> list[str]:
        answer = self._transcript.partial_answer_lines(width, height // 2)
        return [*answer, *self._area.lines(width, height - len(answer))]

    def _print_answer(self, text: str) -> None:
        self._screen.print(text, self._write_answer)

    def _write(self, text: str) -> None:
        write_stderr_raw(text if self._has_unicode else to_ascii(text))
