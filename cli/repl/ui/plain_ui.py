"""The REPL on a dumb terminal: plain lines, no redrawing, answers typed as lines."""

import asyncio
import os
import signal
import sys
import termios
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from agent.protocol.commands import AnswerQuestion
from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    QuestionAnswered,
    QuestionAsked,
    StepCompleted,
    StepStarted,
)
from agent.vocabulary.plan import LEAD, PlanStep
from cli.repl.fuzzy import filter_candidates
from cli.repl.plan_choice import CANCEL
from cli.repl.slash_commands import Candidate
from cli.repl.ui.notifications import notification_for
from cli.run.terminal_approvals import (
    PASTE_NOTICE,
    VIEW_KEY,
    answer_prompt,
    edit_prompt,
    is_pasted,
    parse_answer,
    request_id,
)
from cli.screen.ascii_fallback import supports_unicode, to_ascii
from cli.screen.cards import CardRenderer, InputRequest
from cli.screen.colors import Paint, to_single_line
from cli.screen.plan_view import PlanView
from cli.screen.sanitize import sanitize
from cli.screen.transcript import Transcript

if TYPE_CHECKING:
    from cli.repl.repl import Repl

_PROMPT = "> "
_COLUMNS, _ROWS = 80, 24
_MAX_LISTED = 20
_MAX_LINE_BYTES = 65_536


class PlainUi:
    """Reads lines from the terminal; a line answers the pending question, if there is one."""

    has_lists = False

    def __init__(self, repl: "Repl") -> None:
        self._repl = repl
        self._has_unicode = supports_unicode(repl.state.environ)
        self._transcript = Transcript(
            write=self.print_line, width=lambda: _COLUMNS, paint=repl.paint, markdown=sanitize, expand_hint=""
        )
        self._requests: deque[InputRequest] = deque()
        self._own_questions: dict[str, asyncio.Future[str]] = {}
        self._card = CardRenderer(paint=Paint(has_color=False), width=_COLUMNS, rows=_ROWS)
        self._is_editing = False
        self._is_prompted = False
        self._is_line_above = False
        self._running_steps: list[str] = []
        self._exited: asyncio.Future[int] | None = None
        self._external_lock = asyncio.Lock()

    @property
    def plan(self) -> PlanView:
        """The plan of the latest run."""
        return self._transcript.plan

    @property
    def columns(self) -> int:
        return _COLUMNS

    @property
    def running_steps(self) -> tuple[str, ...]:
        return tuple(self._running_steps)

    async def run(self) -> int:
        """Read lines until the user quits; return the exit code."""
        loop = asyncio.get_running_loop()
        self._exited = loop.create_future()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        loop.add_reader(sys.stdin.fileno(), self._read)
        self._prompt()
        try:
            return await self._exited
        finally:
            loop.remove_reader(sys.stdin.fileno())

    def exit(self, exit_code: int) -> None:
        """Stop reading lines."""
        if self._exited and not self._exited.done():
            self._exited.set_result(exit_code)

    def close(self) -> None:
        """End the prompt's line."""
        if self._is_prompted:
            self._write("")

    def print_line(self, text: str) -> None:
        self._write(text if text.endswith("\n") else text + "\n")

    def echo(self, text: str) -> None:
        """Print the typed text, unless it is the line above."""
        if not self._is_line_above:
            self.print_line(text)

    def on_event(self, envelope: Envelope) -> None:
        self._transcript.on_event(envelope)
        self._notify(notification_for(envelope.event, term=self._repl.state.term))
        match envelope.event:
            case ApprovalRequested(decided=True):
                pass
            case ApprovalRequested() | QuestionAsked() as request:
                self._add_request(request)
            case ApprovalResolved(approval_id=answered) | QuestionAnswered(question_id=answered):
                self._drop(answered)
            case StepStarted(title=title):
                if envelope.step_id != LEAD:
                    self._running_steps.append(envelope.step_id or "")
                    self.print_line(to_single_line(f"{envelope.step_id}: {title}"))
            case StepCompleted():
                self._running_steps = [step for step in self._running_steps if step != envelope.step_id]
            case _:
                pass

    def on_request_ended(self) -> None:
        """Drop the requests and steps of the run that ended."""
        self._requests = deque(request for request in self._requests if request_id(request) in self._own_questions)
        self._running_steps, self._is_editing = [], False

    def show_ready(self) -> None:
        """Print the prompt if the REPL is idle."""
        if not self._requests and self._repl.is_idle:
            self._prompt()

    def show_plan(self, steps: Sequence[PlanStep]) -> None:
        """Draw a plan that has not started yet."""
        self._transcript.show_plan(steps)

    def refresh_completions(self) -> None:
        """Do nothing: there is no completion."""

    async def ask(self, question: str, options: tuple[str, ...], *, is_expected: bool = False) -> str:
        """Ask the user and return the answer."""
        request = QuestionAsked(question_id=f"own-{len(self._own_questions)}", question=question, options=options)
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._own_questions[request.question_id] = answer
        self._add_request(request)
        try:
            return await answer
        finally:
            # Also if the run that asked was stopped meanwhile.
            self._drop(request.question_id)

    async def pick(self, title: str, candidates: Sequence[Candidate]) -> str | None:
        """Let the user choose by number or by a part of the text; return None if nothing was chosen."""
        options = [f"{label} ({detail})" if detail else label for label, detail in candidates[:_MAX_LISTED]]
        answer = await self.ask(title, (*options, CANCEL))
        if answer == CANCEL:
            return None
        matches = candidates[options.index(answer) :] if answer in options else filter_candidates(candidates, answer)
        return matches[0][0] if matches else None

    async def run_external(self, program: Callable[[], None]) -> None:
        """Call `program` in a thread while it owns the terminal."""
        loop = asyncio.get_running_loop()
        async with self._external_lock:
            loop.remove_reader(sys.stdin.fileno())
            try:
                await asyncio.to_thread(program)
            finally:
                loop.add_reader(sys.stdin.fileno(), self._read)

    def clear_text(self) -> bool:
        """Return False: the terminal edits the line itself and has already cleared it."""
        return False

    def set_text(self, text: str, *, is_request: bool = False) -> bool:
        """Return False: the terminal edits the line itself."""
        return False

    def cancel_edit(self) -> bool:
        """Cancel editing a command and show its approval again, or decline a question of the REPL itself."""
        request = self._requests[0] if self._requests else None
        if isinstance(request, QuestionAsked) and (own := self._own_questions.get(request.question_id)):
            own.set_result(request.options[-1])
            self._drop(request.question_id)
            return True
        if not self._is_editing:
            return False
        self._is_editing = False
        self._show_first()
        return True

    def _interrupt(self) -> None:
        if not self._external_lock.locked():
            self._repl.interrupt()
            self.show_ready()

    def _read(self) -> None:
        data = os.read(sys.stdin.fileno(), _MAX_LINE_BYTES)
        if not data:
            self._repl.exit()
            return
        self._is_prompted = False
        self._is_line_above = True
        for line in data.decode("utf-8", "replace").splitlines():
            self._accept(line.strip())

    def _accept(self, line: str) -> None:
        if not self._requests:
            self._repl.accept(line, is_pasted=line.startswith("#") and is_pasted())
            self.show_ready()
            return
        request = self._requests[0]
        if isinstance(request, QuestionAsked) and not line:
            return
        if is_pasted():
            self.print_line(PASTE_NOTICE)
            self._show_first()
            return
        if line.lower() == VIEW_KEY and isinstance(request, ApprovalRequested) and not self._is_editing:
            self._write(self._card.full_text(request) + answer_prompt(request))
            return
        answer = parse_answer(request, line, is_edited=self._is_editing)
        self._is_editing = answer is None
        if answer is None:
            self._write(edit_prompt(request))
            self._is_prompted = True
            return
        if own := self._own_questions.get(request_id(request)):
            own.set_result(answer.answer if isinstance(answer, AnswerQuestion) else "")
        else:
            self._repl.queue.send(answer)
        self._drop(request_id(request))

    def _add_request(self, request: InputRequest) -> None:
        self._requests.append(request)
        if len(self._requests) == 1:
            self._show_first()

    def _drop(self, answered: str) -> None:
        was_first = bool(self._requests) and request_id(self._requests[0]) == answered
        self._requests = deque(request for request in self._requests if request_id(request) != answered)
        if was_first:
            self._is_editing = False
            self._show_first()

    def _show_first(self) -> None:
        if not self._requests:
            self.show_ready()
            return
        request = self._requests[0]
        # Input typed before the question was visible cannot be meant as its answer.
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        prompt = answer_prompt(request, is_folded=self._card.is_folded(request))
        self._write("\n" + "\n".join(self._card.lines(request)) + "\n" + prompt)
        self._is_prompted = True

    def _prompt(self) -> None:
        if not self._is_prompted:
            self._write(_PROMPT)
            self._is_prompted = True

    def _write(self, text: str) -> None:
        # Output that arrives at the prompt starts on a new line.
        text = f"\n{text}" if self._is_prompted else text
        self._is_prompted = self._is_line_above = False
        self._write_raw(text if self._has_unicode else to_ascii(text))

    def _notify(self, sequence: str) -> None:
        # Directly to the buffer: the text stream removes escape sequences.
        with suppress(OSError):
            sys.stdout.flush()
            sys.stdout.buffer.write(sequence.encode())
            sys.stdout.buffer.flush()

    def _write_raw(self, text: str) -> None:
        # If the terminal is gone, SIGHUP ends the program; writing need not fail.
        with suppress(OSError):
            sys.stdout.write(text)
            sys.stdout.flush()
