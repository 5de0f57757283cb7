"""Renders the events of a run: progress on stderr, data on stdout, questions to the user."""

import asyncio
import errno
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.app import App
from agent.config.user_dirs import current_folder
from agent.protocol.channel import Subscription
from agent.protocol.envelope import Envelope
from agent.protocol.events import ErrorRaised, Event, MessageAdded, PlanUpdated, RunCompleted
from agent.vocabulary import exit_codes
from cli.run.flags import RunFlags
from cli.run.progress import Progress, can_redraw, wants_color, write_stderr_raw
from cli.run.stdout import LineWriter, event_line, sanitize_for_terminal, write_line
from cli.screen.ascii_fallback import supports_unicode, to_ascii

if TYPE_CHECKING:
    from cli.run.live_progress import LiveProgress
    from cli.run.terminal_approvals import TerminalApprovals

_DRAIN_INTERVAL_S = 2.0
STDOUT_CLOSED = "stdout was closed"
STDOUT_BLOCKED = "stdout is not being read"


class Listener:
    """The subscriber of one command line; it interrupts the run when stdout is closed."""

    def __init__(
        self, *, app: App, flags: RunFlags, environ: Mapping[str, str], stream: LineWriter | None = None
    ) -> None:
        self._app = app
        is_stream = flags.output_format == "stream-json"
        self._stream = stream or (LineWriter() if is_stream else None)
        self._is_text = flags.output_format == "text"
        self._is_quiet = flags.quiet or is_stream
        self._is_plan_shown = not flags.plan_only
        # The editor needs the terminal to itself.
        is_live = not (self._is_quiet or flags.plain or flags.edit) and can_redraw(environ)
        is_on_terminal = is_live and sys.stdout.isatty()
        # Otherwise the answer is written when it is complete: a pipe gets it once, unchanged.
        self._is_streamed = is_on_terminal and self._is_text and self._is_plan_shown
        self._live = _live_progress(environ, self._write_block if self._is_streamed else None) if is_live else None
        self._has_unicode = supports_unicode(environ)
        self._progress = self._live or Progress(write=self._write_line, has_color=wants_color(environ))
        self._is_answer_on_terminal = is_on_terminal
        is_asked_here = app.is_user_present and flags.input_format == "text"
        self._answers = self._terminal_approvals(environ) if is_asked_here else None
        self.result: Envelope | None = None
        self.has_answered = False
        self.write_error: OSError | None = None

    def _terminal_approvals(self, environ: Mapping[str, str]) -> "TerminalApprovals":
        from cli.run.terminal_approvals import TerminalApprovals

        return TerminalApprovals(send=self._app.send, environ=environ, cwd=self._app.scope.cwd, screen=self._live)

    @property
    def writable_dirs(self) -> tuple[Path, ...]:
        """The folders that the run's commands could write to."""
        return (self._app.scope.cwd, *self._app.scope.extra_dirs)

    @property
    def own_folder(self) -> Path | None:
        """The working folder if it was created for the run; None if it is one of the user's."""
        return self._app.scope.cwd if self._app.scope.uses_session_workspace else None

    @property
    def files_folder(self) -> Path | None:
        """The working folder, unless it is the user's current one."""
        cwd = self._app.scope.cwd
        return cwd if self.own_folder or cwd != current_folder() else None

    @property
    def is_live(self) -> bool:
        """Whether a live screen shows the run, including created files and the resume hint."""
        return self._live is not None

    def answer_text(self, text: str) -> str:
        """Return the answer for stdout, rendered if it appears below a live screen."""
        return (
            self._live.render_answer(text)
            if self._live and self._is_answer_on_terminal
            else sanitize_for_terminal(text)
        )

    async def finish(self, listening: "asyncio.Task[None]") -> None:
        """Wait until every event is written; a blocked stdout is waited for until the run is interrupted."""
        is_last = False
        while not (listening.done() or is_last):
            is_last = self._app.is_interrupted
            await asyncio.wait([listening], timeout=_DRAIN_INTERVAL_S)
        if not listening.done():
            self.write_error = OSError(errno.ETIMEDOUT, STDOUT_BLOCKED)

    async def listen(self, events: Subscription) -> None:
        """Render all events until the subscription ends."""
        async for envelope in events:
            if self._answers:
                self._answers.on_event(envelope)
            if self._is_progress(envelope.event):
                self._progress.on_event(envelope)
            if isinstance(envelope.event, RunCompleted):
                self.result = envelope
                self.has_answered = self.has_answered or self._is_streamed
            await self._write_event(envelope)
            if self._is_text and not self._is_streamed and (answer := _final_answer(envelope)):
                await self._write_answer(answer)
        if self._live:
            self._live.close()

    def _is_progress(self, event: Event) -> bool:
        # With --plan-only the plan is the answer on stdout, so progress leaves it out.
        is_shown = self._is_plan_shown or not isinstance(event, PlanUpdated)
        return isinstance(event, ErrorRaised) or (is_shown and not self._is_quiet)

    def _write_block(self, text: str) -> None:
        """Write a part of the answer to the terminal as it arrives."""
        try:
            write_line(text.removesuffix("\n"))
        except OSError as problem:
            self.write_error = problem

    async def _write_answer(self, text: str) -> None:
        """Write the answer at once; the run may still be busy updating the memory."""
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
            self._app.interrupt(exit_codes.TERMINATED, STDOUT_CLOSED)


def _live_progress(environ: Mapping[str, str], write_answer: Callable[[str], None] | None) -> "LiveProgress":
    # Imported here: scripts write to pipes and files and need no drawing code.
    from cli.run.live_progress import LiveProgress

    return LiveProgress(environ, write_answer=write_answer)


def _final_answer(envelope: Envelope) -> str:
    """Return the answer if this event carries all of it, before the end of the run."""
    match envelope.event:
        case MessageAdded(role="assistant", delta=False, content=answer) if envelope.step_id is None:
            return answer
        case _:
            return ""
