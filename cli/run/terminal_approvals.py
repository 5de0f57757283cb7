"""Approvals and questions on a terminal: one at a time, in order, each answered with a line."""

import asyncio
import queue
import select
import sys
import termios
import threading
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from agent.protocol.commands import Answer, AnswerQuestion, ResolveApproval
from agent.protocol.events import (
    ApprovalRequested,
    Envelope,
    ErrorRaised,
    Event,
    QuestionAsked,
    RunCompleted,
    StepCompleted,
)
from cli.escape_command import command_lines, escape
from tooling.contract.action import Opinion, Scope

InputRequest: TypeAlias = ApprovalRequested | QuestionAsked

_ONCE = "[y] once  [r] {what} in this run"
_SAME = "the same again"
_LASTING = "  [p] {rule} in this folder  [a] {rule} always"
_EDIT = "  [e] edit it"
_DENY = "  [n] no, or write why not: "
_COMMAND = "run_command"
ANSWER_PROMPT = "your answer: "
PASTE_NOTICE = "(pasted lines are not taken as an answer)"
_DIFF_LINES = 60
_DEFAULT_REASON = "it changes a file in your folder (--approval-mode auto-edit allows that)"
# Without a live screen, these are printed at once.
_PRINTED = (StepCompleted, ErrorRaised, RunCompleted)
_OPINIONS = {"allow": "looks fine.", "ask": "needs your look.", "deny": "should not run."}
_SCOPES: dict[str, Scope] = {"y": "once", "yes": "once", "r": "run", "p": "project", "a": "always"}


class PausableScreen(Protocol):
    """A live screen that gives up the terminal while a question is open."""

    def pause(self) -> None:
        """Leave the terminal to the question."""
        ...

    def resume(self) -> None:
        """Take the terminal back."""
        ...


class TerminalApprovals:
    """Reads answers in a thread: other steps continue, and an open question does not block the exit."""

    def __init__(self, *, send: Callable[[Answer], bool], screen: PausableScreen | None = None) -> None:
        self._send = send
        self._screen = screen
        self._pending_count = 0
        self._is_reading = False
        self._loop = asyncio.get_running_loop()
        self._requests: queue.SimpleQueue[InputRequest] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def on_event(self, envelope: Envelope) -> None:
        """Queue the event if it needs an answer; what is printed next starts below the line of an open question."""
        if self._is_reading and isinstance(envelope.event, RunCompleted if self._screen else _PRINTED):
            self._is_reading = False
            _write("\n")
        if not isinstance(envelope.event, (ApprovalRequested, QuestionAsked)) or is_decided(envelope.event):
            return
        self._pending_count += 1
        if self._screen:
            self._screen.pause()
        self._requests.put(envelope.event)
        if self._thread is None:
            self._thread = threading.Thread(target=self._read_answers, daemon=True, name="answers")
            self._thread.start()

    def _read_answers(self) -> None:
        while True:
            request = self._requests.get()
            self._is_reading = True
            answer = _prompt_user(request)
            self._is_reading = False
            self._loop.call_soon_threadsafe(self._on_answer, answer)

    def _on_answer(self, answer: Answer) -> None:
        self._send(answer)
        self._pending_count -= 1
        if self._screen and not self._pending_count:
            self._screen.resume()


def is_decided(event: Event) -> bool:
    """Whether an event is an approval about which nobody is asked."""
    return isinstance(event, ApprovalRequested) and event.decided


def _prompt_user(request: InputRequest) -> Answer:
    lines = question_lines(request) if isinstance(request, QuestionAsked) else approval_lines(request)
    _write("\n" + "\n".join(lines) + "\n")
    answer = parse_answer(request, _read_line(answer_prompt(request)))
    while answer is None:
        answer = parse_answer(request, _read_line(edit_prompt(request)), is_edited=True)
    return answer


def parse_answer(request: InputRequest, line: str, *, is_edited: bool = False) -> Answer | None:
    """Parse a line as an answer. None asks for an edited command, which is then parsed with `is_edited`."""
    if isinstance(request, QuestionAsked):
        return parse_choice(request, line)
    word = line.lower()
    if is_edited:
        decision: Literal["allow", "deny"] = "allow" if line else "deny"
        return ResolveApproval(approval_id=request.approval_id, decision=decision, command=line or None)
    if word in _SCOPES and (can_store_rule(request) or word not in ("p", "a")):
        return ResolveApproval(approval_id=request.approval_id, decision="allow", scope=_SCOPES[word])
    if word in ("e", "edit") and request.tool == _COMMAND:
        return None
    return ResolveApproval(approval_id=request.approval_id, decision="deny", remark="" if word in ("n", "no") else line)


def parse_choice(request: QuestionAsked, line: str) -> AnswerQuestion:
    """Return the option of that number, or the line itself."""
    index = int(line) - 1 if line.isdecimal() else -1
    answer = request.options[index] if 0 <= index < len(request.options) else line
    return AnswerQuestion(question_id=request.question_id, answer=answer)


def answer_prompt(request: InputRequest) -> str:
    """Return the prompt of the answer line."""
    if isinstance(request, QuestionAsked):
        return ANSWER_PROMPT
    lasting = _LASTING.format(rule=rule_text(request)) if can_store_rule(request) else ""
    return _once_text(request) + lasting + (_EDIT if request.tool == _COMMAND else "") + _DENY


def edit_prompt(request: InputRequest) -> str:
    """Return the prompt for an edited command."""
    return f"run instead of {escape(request.command if isinstance(request, ApprovalRequested) else '')}\n> "


def request_id(request: InputRequest) -> str:
    """Return the id that the answer must carry."""
    return request.approval_id if isinstance(request, ApprovalRequested) else request.question_id


def _once_text(request: ApprovalRequested) -> str:
    """Return the choices for this run; for a web page, the host is allowed rather than the one URL."""
    is_host = request.tool != _COMMAND and request.rule.startswith(f"{request.tool} ")
    return _ONCE.format(what=rule_text(request) if is_host else _SAME)


def rule_text(request: ApprovalRequested) -> str:
    """Return the rule that would be saved, quoted."""
    return f"'{escape(request.rule)}'"


def can_store_rule(request: ApprovalRequested) -> bool:
    return bool(request.rule)


def approval_lines(request: ApprovalRequested) -> list[str]:
    """Return the exact action and the reason why it needs approval."""
    first, *rest = command_lines(request.command)
    return [
        f"allow this?  {'' if request.tool in (None, _COMMAND) else f'{request.tool} '}{first}",
        *rest,
        f"  in {escape(request.cwd)}",
        f"  because {escape(request.reason) or _DEFAULT_REASON}",
        *(f"  it {escape(part)}" for part in request.involves or ()),
        *([f"  reviewer: {escape(opinion_text(request.opinion))}"] if request.opinion else ()),
        *(_diff_lines(request.diff) if request.diff else ()),
    ]


def opinion_text(opinion: Opinion) -> str:
    """Return a reviewer's opinion as one line."""
    return f"{_OPINIONS[opinion.verdict]} {opinion.text}".rstrip()


def _diff_lines(diff: str) -> list[str]:
    lines = [escape(line) for line in diff.split("\n")]
    if len(lines) <= _DIFF_LINES:
        return lines
    return [*lines[:_DIFF_LINES], f"… {len(lines) - _DIFF_LINES} more lines"]


def question_lines(request: QuestionAsked) -> list[str]:
    """Return a question and its numbered options."""
    options = [f"  {n}. {escape(option)}" for n, option in enumerate(request.options, 1)]
    return [*map(escape, request.question.split("\n")), *options]


def is_pasted() -> bool:
    """Whether more input follows the line just read, faster than anyone types."""
    return bool(select.select([sys.stdin], [], [], 0)[0])


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _read_line(prompt: str) -> str:
    # Keys typed before the question was visible cannot be meant as its answer.
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    _write(prompt)
    line = sys.stdin.buffer.readline().decode(errors="replace").strip()
    if is_pasted():
        _write(f"{PASTE_NOTICE}\n")
        return _read_line(prompt)
    return line
