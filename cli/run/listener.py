"""Listens to a run and shows each event where it belongs: lines on stderr, data on stdout, questions to the person."""

import asyncio
import errno
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.app import App
from agent.protocol.channel import Subscription
from agent.protocol.events import Envelope, ErrorRaised, Event, MessageSaid, PlanMade, RunCompleted
from agent.vocabulary import exit_codes
from cli.run.flags import RunFlags
from cli.run.progress import Progress, can_redraw, wants_colour, write_stderr_raw
from cli.run.stdout import LineWriter, event_line, sanitize_for_terminal
from cli.run.terminal_approvals import TerminalApprovals
from cli.screen.ascii_fallback import supports_unicode, to_ascii

if TYPE_CHECKING:
    from cli.run.live_progress import LiveProgress

_DRAIN_INTERVAL_S = 2.0


class Listener:
    """One subscriber for a command line; when nobody reads stdout any more, the run ends."""

    def __init__(self, *, app: App, flags: RunFlags, environ: Mapping[str, str]) -> None:
        self._app = app
        is_stream = flags.output_format == "stream-json"
        self._stream = LineWriter() if is_stream else None
        self._is_text = flags.output_format == "text"
        self._is_quiet = flags.quiet or is_stream
        self._is_plan_shown = not flags.plan_only
        # An editor needs the terminal for itself.
        is_live = not (self._is_quiet or flags.plain or flags.edit) and can_redraw(environ)
        self._live = _live_progress(environ) if is_live else None
        self._has_unicode = supports_unicode(environ)
        self._progress = self._live or Progress(write=self._write_line, has_colour=wants_colour(environ))
        self._is_answer_on_terminal = self._live is not None and sys.stdout.isatty()
        self._answers = TerminalApprovals(send=app.send, screen=self._live) if app.is_user_present else None
        self.result: Envelope | None = None
        self.has_answered = False
        self.write_error: OSError | None = None

    @property
    def writable_dirs(self) -> tuple[Path, ...]:
        """Return where the commands of the run could write."""
        return (self._app.scope.cwd, *self._app.scope.extra_dirs)

    @property
    def is_live(self) -> bool:
        """Say whether a screen shows the run, down to what it made and how to go on."""
        return self._live is not None

    def answer_text(self, text: str) -> str:
        """Return an answer for stdout: laid out where a person reads it below the run, else as it is."""
        return (
            self._live.render_answer(text)
            if self._live and self._is_answer_on_terminal
            else sanitize_for_terminal(text)
        )

    async def finish(self, listening: "asyncio.Task[None]") -> None:
        """Wait until everything is shown; a reader that does not read is waited for until somebody interrupts."""
        is_last = False
        while not (listening.done() or is_last):
            is_last = self._app.is_interrupted
            await asyncio.wait([listening], timeout=_DRAIN_INTERVAL_S)
        if not listening.done():
            self.write_error = OSError(errno.ETIMEDOUT, "nobody reads stdout")

    async def listen(self, events: Subscription) -> None:
        """Show everything to the end."""
        async for envelope in events:
            if self._answers:
                self._answers.on_event(envelope)
            await self._write_answer_early(envelope.event)
            if self._is_progress(envelope.event):
                self._progress.on_event(envelope)
            if isinstance(envelope.event, RunCompleted):
                self.result = envelope
            await self._write_event(envelope)
            if self._is_text and (answer := _final_answer(envelope)):
                await self._write_answer(answer)
        if self._live:
            self._live.close()

    def _is_progress(self, event: Event) -> bool:
        # A plan that is the answer stands on stdout and need not be told before.
        is_shown = self._is_plan_shown or not isinstance(event, PlanMade)
        return isinstance(event, ErrorRaised) or (is_shown and not self._is_quiet)

    async def _write_answer_early(self, event: Event) -> None:
        """Let the answer come before the line that ends the transcript, as at the prompt."""
        is_due = self._is_text and self._is_answer_on_terminal and self._is_plan_shown and not self.has_answered
        if is_due and isinstance(event, RunCompleted) and event.result:
            await self._write_answer(event.result)

    async def _write_answer(self, text: str) -> None:
        """Show the answer of a run that still has something to do; nobody shall wait for that."""
        if self._live:
            self._live.pause()
        try:
            await LineWriter().write(self.answer_text(text))
            self.has_answered = True
        except OSError as problem:
            self.write_error = problem
        if self._live:
            self._live.resume()

    def _write_line(self, text: str) -> None:
        write_stderr_raw(f"{text if self._has_unicode else to_ascii(text)}\n")

    async def _write_event(self, envelope: Envelope) -> None:
        if self._stream is None:
            return
        try:
            await self._stream.write(event_line(envelope))
        except OSError as problem:
            self.write_error, self._stream = problem, None
            self._app.interrupt(exit_codes.TERMINATED, "nobody reads stdout any more")


def _live_progress(environ: Mapping[str, str]) -> "LiveProgress":
    # A pipe or a file, which most runs of programs write to, does without all that draws.
    from cli.run.live_progress import LiveProgress

    return LiveProgress(environ)


def _final_answer(envelope: Envelope) -> str:
    """Return the whole answer when this event tells it before the end of the run."""
    match envelope.event:
        case MessageSaid(role="assistant", delta=False, content=answer) if envelope.step_id is None:
            return answer
        case _:
            return ""
