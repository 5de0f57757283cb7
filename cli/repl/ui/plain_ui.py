"""The REPL on a terminal that only knows lines: nothing is redrawn, and every answer is a line."""

import asyncio
import os
import signal
import sys
import termios
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from agent.protocol.commands import AnswerQuestion
from agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    QuestionAnswered,
    QuestionAsked,
    StepCompleted,
    StepStarted,
)
from cli.repl.ui.notifications import notice_of
from cli.run.terminal_approvals import (
    PASTED,
    Asked,
    answer_of,
    approval_lines,
    asked_id,
    edit_question,
    is_pasted,
    offer,
    question_lines,
)
from cli.screen.ascii_fallback import knows_unicode, without_unicode
from cli.screen.colors import shown
from cli.screen.plan_board import PlanBoard
from cli.screen.sanitize import readable
from cli.screen.transcript import Transcript

if TYPE_CHECKING:
    from cli.repl.repl import Repl

_PROMPT = "> "
_COLUMNS = 80
_LONGEST_LINE = 65_536


class LineFace:
    """Reads lines as the terminal hands them over; a line answers what was asked before it was typed."""

    def __init__(self, repl: "Repl") -> None:
        self._repl = repl
        self._has_unicode = knows_unicode(repl.place.environ)
        self._transcript = Transcript(
            write=self.say, width=lambda: _COLUMNS, paint=repl.paint, markdown=readable, way_to_more=""
        )
        self._asked: deque[Asked] = deque()
        self._own: dict[str, asyncio.Future[str]] = {}
        self._is_editing = False
        self._is_prompted = False
        self._is_line_above = False
        self._running: list[str] = []
        self._left: asyncio.Future[int] | None = None
        self._lending = asyncio.Lock()

    @property
    def plan(self) -> PlanBoard:
        """Return the plan of the newest run."""
        return self._transcript.plan

    @property
    def columns(self) -> int:
        """Return how wide lines may be."""
        return _COLUMNS

    @property
    def running(self) -> tuple[str, ...]:
        """Return the ids of the steps at work."""
        return tuple(self._running)

    async def run(self) -> int:
        """Read lines until somebody leaves; return the exit code."""
        loop = asyncio.get_running_loop()
        self._left = loop.create_future()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        loop.add_reader(sys.stdin.fileno(), self._read)
        self._prompt()
        try:
            return await self._left
        finally:
            loop.remove_reader(sys.stdin.fileno())

    def leave(self, exit_code: int) -> None:
        """Read no further line."""
        if self._left and not self._left.done():
            self._left.set_result(exit_code)

    def close(self) -> None:
        """End the line that waits."""
        if self._is_prompted:
            self._write("")

    def say(self, text: str) -> None:
        """Write lines."""
        self._write(text if text.endswith("\n") else text + "\n")

    def echo(self, text: str) -> None:
        """Repeat what the person wrote, unless it is the line above."""
        if not self._is_line_above:
            self.say(text)

    def hear(self, envelope: Envelope) -> None:
        """Show an event of the run."""
        self._transcript.hear(envelope)
        self._ring(notice_of(envelope.event, term=self._repl.place.term))
        match envelope.event:
            case ApprovalRequested() | QuestionAsked() as asked:
                self._put(asked)
            case ApprovalResolved(approval_id=answered) | QuestionAnswered(question_id=answered):
                self._drop(answered)
            case StepStarted(title=title):
                self._running.append(envelope.step_id or "")
                self.say(shown(f"{envelope.step_id}: {title}"))
            case StepCompleted():
                self._running = [step for step in self._running if step != envelope.step_id]
            case _:
                pass

    def ended(self) -> None:
        """Be ready for the next request."""
        self._asked = deque(asked for asked in self._asked if asked_id(asked) in self._own)
        self._running, self._is_editing = [], False

    def ready(self) -> None:
        """Ask for the next line, if nothing is going on."""
        if not self._asked and self._repl.is_idle:
            self._prompt()

    def offer_anew(self) -> None:
        """Offer nothing: a terminal of lines completes nothing."""

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        """Put a question to the person."""
        asked = QuestionAsked(question_id=f"own-{len(self._own)}", question=question, options=options)
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._own[asked.question_id] = answer
        self._put(asked)
        return await answer

    async def lend(self, deed: Callable[[], None]) -> None:
        """Leave the terminal to something else."""
        loop = asyncio.get_running_loop()
        async with self._lending:
            loop.remove_reader(sys.stdin.fileno())
            try:
                await asyncio.to_thread(deed)
            finally:
                loop.add_reader(sys.stdin.fileno(), self._read)

    def drop_text(self) -> bool:
        """Return False: what is being typed is the terminal's own, and it has cleared it."""
        return False

    def put_text(self, text: str) -> bool:
        """Return False: the terminal's own line cannot be written by us."""
        return False

    def stop_writing(self) -> bool:
        """Ask anew about a command that was to be replaced; False when there is none."""
        if not self._is_editing:
            return False
        self._is_editing = False
        self._show_first()
        return True

    def _interrupt(self) -> None:
        if not self._lending.locked():
            self._repl.interrupt()
            self.ready()

    def _read(self) -> None:
        data = os.read(sys.stdin.fileno(), _LONGEST_LINE)
        if not data:
            self._repl.leave()
            return
        self._is_prompted = False
        self._is_line_above = True
        for line in data.decode("utf-8", "replace").splitlines():
            self._accept(line.strip())

    def _accept(self, line: str) -> None:
        if not self._asked:
            self._repl.accept(line)
            self.ready()
            return
        asked = self._asked[0]
        if isinstance(asked, QuestionAsked) and not line:
            return
        if is_pasted():
            self.say(PASTED)
            self._show_first()
            return
        answer = answer_of(asked, line, is_edited=self._is_editing)
        self._is_editing = answer is None
        if answer is None:
            self._write(edit_question(asked))
            return
        if own := self._own.get(asked_id(asked)):
            own.set_result(answer.answer if isinstance(answer, AnswerQuestion) else "")
        else:
            self._repl.turns.send(answer)
        self._drop(asked_id(asked))

    def _put(self, asked: Asked) -> None:
        self._asked.append(asked)
        if len(self._asked) == 1:
            self._show_first()

    def _drop(self, answered: str) -> None:
        was_first = bool(self._asked) and asked_id(self._asked[0]) == answered
        self._asked = deque(asked for asked in self._asked if asked_id(asked) != answered)
        if was_first:
            self._is_editing = False
            self._show_first()

    def _show_first(self) -> None:
        if not self._asked:
            self.ready()
            return
        asked = self._asked[0]
        lines = question_lines(asked) if isinstance(asked, QuestionAsked) else approval_lines(asked)
        # What was typed before the question stood on the screen cannot be meant as its answer.
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        self._write("\n" + "\n".join(lines) + "\n" + offer(asked))

    def _prompt(self) -> None:
        if not self._is_prompted:
            self._write(_PROMPT)
            self._is_prompted = True

    def _write(self, text: str) -> None:
        # What comes by itself does not go on in the line that waits for the person.
        text = f"\n{text}" if self._is_prompted else text
        self._is_prompted = self._is_line_above = False
        self._send(text if self._has_unicode else without_unicode(text))

    def _ring(self, notice: str) -> None:
        # Past the stream, which lets nothing but words through to a terminal.
        with suppress(OSError):
            sys.stdout.flush()
            sys.stdout.buffer.write(notice.encode())
            sys.stdout.buffer.flush()

    def _send(self, text: str) -> None:
        # A terminal that is gone is no reason to fail: the signal that says so is on its way.
        with suppress(OSError):
            sys.stdout.write(text)
            sys.stdout.flush()
