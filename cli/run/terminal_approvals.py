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
from agent.protocol.events import ApprovalRequested, Envelope, QuestionAsked
from cli.escape_command import command_lines, escape
from tooling.contract.action import Scope

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
        self._loop = asyncio.get_running_loop()
        self._requests: queue.SimpleQueue[InputRequest] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def on_event(self, envelope: Envelope) -> None:
        """Queue the event if it needs an answer."""
        if not isinstance(envelope.event, (ApprovalRequested, QuestionAsked)):
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
            answer = _prompt_user(self._requests.get())
            self._loop.call_soon_threadsafe(self._on_answer, answer)

    def _on_answer(self, answer: Answer) -> None:
        self._send(answer)
        self._pending_count -= 1
        if self._screen and not self._pending_count:
            self._screen.resume()


def _prompt_user(asked: InputRequest) -> Answer:
    lines = question_lines(asked) if isinstance(asked, QuestionAsked) else approval_lines(asked)
    _write("\n" + "\n".join(lines) + "\n")
    answer = parse_answer(asked, _read_line(answer_prompt(asked)))
    while answer is None:
        answer = parse_answer(asked, _read_line(edit_prompt(asked)), is_edited=True)
    return answer


def parse_answer(asked: InputRequest, line: str, *, is_edited: bool = False) -> Answer | None:
    """Parse a line as an answer. None asks for an edited command, which is then parsed with `is_edited`."""
    if isinstance(asked, QuestionAsked):
        return parse_choice(asked, line)
    word = line.lower()
    if is_edited:
        decision: Literal["allow", "deny"] = "allow" if line else "deny"
        return ResolveApproval(approval_id=asked.approval_id, decision=decision, command=line or None)
    if word in _SCOPES and (can_store_rule(asked) or word not in ("p", "a")):
        return ResolveApproval(approval_id=asked.approval_id, decision="allow", scope=_SCOPES[word])
    if word in ("e", "edit") and asked.tool == _COMMAND:
        return None
    return ResolveApproval(approval_id=asked.approval_id, decision="deny", remark="" if word in ("n", "no") else line)


def parse_choice(asked: QuestionAsked, line: str) -> AnswerQuestion:
    """Return the option of that number, or the line itself."""
    index = int(line) - 1 if line.isdecimal() else -1
    answer = asked.options[index] if 0 <= index < len(asked.options) else line
    return AnswerQuestion(question_id=asked.question_id, answer=answer)


def answer_prompt(asked: InputRequest) -> str:
    """Return the prompt of the answer line."""
    if isinstance(asked, QuestionAsked):
        return ANSWER_PROMPT
    lasting = _LASTING.format(rule=rule_text(asked)) if can_store_rule(asked) else ""
    return _once_text(asked) + lasting + (_EDIT if asked.tool == _COMMAND else "") + _DENY


def edit_prompt(asked: InputRequest) -> str:
    """Return the prompt for an edited command."""
    return f"run instead of {escape(asked.command if isinstance(asked, ApprovalRequested) else '')}\n> "


def request_id(asked: InputRequest) -> str:
    """Return the id that the answer must carry."""
    return asked.approval_id if isinstance(asked, ApprovalRequested) else asked.question_id


def _once_text(asked: ApprovalRequested) -> str:
    """Return the choices for this run; for a web page, the host is allowed rather than the one URL."""
    is_host = asked.tool != _COMMAND and asked.rule.startswith(f"{asked.tool} ")
    return _ONCE.format(what=rule_text(asked) if is_host else _SAME)


def rule_text(asked: ApprovalRequested) -> str:
    """Return the rule that would be saved, quoted."""
    return f"'{escape(asked.rule)}'"


def can_store_rule(asked: ApprovalRequested) -> bool:
    return bool(asked.rule)


def approval_lines(asked: ApprovalRequested) -> list[str]:
    """Return the exact action and the reason why it needs approval."""
    first, *rest = command_lines(asked.command)
    return [
        f"allow this?  {'' if asked.tool in (None, _COMMAND) else f'{asked.tool} '}{first}",
        *rest,
        f"  in {escape(asked.cwd)}",
        f"  because {escape(asked.reason) or _DEFAULT_REASON}",
        *(f"  it {escape(part)}" for part in asked.involves or ()),
        *(_diff_lines(asked.diff) if asked.diff else ()),
    ]


def _diff_lines(diff: str) -> list[str]:
    lines = [escape(line) for line in diff.split("\n")]
    if len(lines) <= _DIFF_LINES:
        return lines
    return [*lines[:_DIFF_LINES], f"… {len(lines) - _DIFF_LINES} more lines"]


def question_lines(asked: QuestionAsked) -> list[str]:
    """Return a question and its numbered options."""
    options = [f"  {n}. {escape(option)}" for n, option in enumerate(asked.options, 1)]
    return [*map(escape, asked.question.split("\n")), *options]


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
