"""Approvals and questions on a terminal: one at a time, in order, each answered with a line."""

import asyncio
import queue
import select
import sys
import termios
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol

from agent.protocol.commands import Answer, AnswerQuestion, ResolveApproval
from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    MANIFEST_TOOL,
    ApprovalRequested,
    ErrorRaised,
    Event,
    QuestionAsked,
    RunCompleted,
    StepCompleted,
)
from agent.vocabulary.plan import LEAD
from cli.external_programs import ExternalPrograms
from cli.run.progress import stderr_size, wants_color, write_stderr_raw
from cli.screen.cards import (
    EDITABLE_TOOLS,
    CardRenderer,
    InputRequest,
    can_store_rule,
    join_keys,
    rule_text,
)
from cli.screen.colors import Paint, resolve_theme
from cli.screen.format import COMMAND_TOOL
from tooling.contract.action import Scope
from tooling.safety.hidden_characters import escape_hidden

_ONCE = ("[y] once", "[r] {what} in this run")
_SAME = "the same again"
_LASTING = ("[p] {rule} in this folder", "[a] {rule} always")
_EDIT = "[e] edit it"
_VIEW = "[v] view all"
_DENY = "[n] no, or write why not: "
VIEW_KEY = "v"
ANSWER_PROMPT = "your answer: "
EDIT_MANIFEST = 'the manifest as one line of JSON, for example {"version": 1, "programs": ["make"]}\n> '
PASTE_NOTICE = "(pasted lines are not taken as an answer)"
# Without a live screen, these are printed at once.
_PRINTED = (StepCompleted, ErrorRaised, RunCompleted)
_SCOPES: dict[str, Scope] = {"y": "once", "yes": "once", "r": "run", "p": "project", "a": "always"}


class PausableScreen(Protocol):
    """A live screen that releases the terminal while a question is open."""

    def pause(self) -> None:
        """Release the terminal for the question."""
        ...

    def resume(self) -> None:
        """Reclaim the terminal."""
        ...


class TerminalApprovals:
    """Reads answers in a thread: other steps continue, and an open question does not block the exit."""

    def __init__(
        self,
        *,
        send: Callable[[Answer], bool],
        environ: Mapping[str, str],
        cwd: Path,
        screen: PausableScreen | None = None,
    ) -> None:
        self._send = send
        self._paint = Paint(has_color=wants_color(environ), theme=resolve_theme("auto", environ))
        self._programs = ExternalPrograms(environ, cwd)
        self._screen = screen
        self._pending_count = 0
        self._is_reading = False
        self._loop = asyncio.get_running_loop()
        self._requests: queue.SimpleQueue[tuple[str, InputRequest]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def on_event(self, envelope: Envelope) -> None:
        """Queue the event if it needs an answer; later output starts below the line of an open question."""
        if self._is_reading and isinstance(envelope.event, RunCompleted if self._screen else _PRINTED):
            self._is_reading = False
            _write("\n")
        if not isinstance(envelope.event, (ApprovalRequested, QuestionAsked)) or is_decided(envelope.event):
            return
        self._pending_count += 1
        if self._screen:
            self._screen.pause()
        step = "" if envelope.step_id in (None, LEAD) else envelope.step_id or ""
        self._requests.put((step, envelope.event))
        if self._thread is None:
            self._thread = threading.Thread(target=self._read_answers, daemon=True, name="answers")
            self._thread.start()

    def _read_answers(self) -> None:
        while True:
            step, request = self._requests.get()
            self._is_reading = True
            answer = self._prompt_user(step, request)
            self._is_reading = False
            self._loop.call_soon_threadsafe(self._on_answer, answer)

    def _prompt_user(self, step: str, request: InputRequest) -> Answer:
        columns, rows = stderr_size()
        card = CardRenderer(paint=self._paint, width=columns, rows=rows)
        text = "\n".join(card.lines(request, step=step))
        write_stderr_raw(f"\n{text}\n\n")
        prompt = answer_prompt(request, is_folded=card.is_folded(request), width=columns)
        line = _read_line(prompt)
        while line.lower() == VIEW_KEY and isinstance(request, ApprovalRequested):
            self._programs.open_pager(card.full_text(request))
            line = _read_line(prompt)
        answer = parse_answer(request, line)
        if answer is None and isinstance(request, ApprovalRequested) and request.tool == MANIFEST_TOOL:
            edited = self._programs.edit(request.command, name="manifest.toml")
            answer = ResolveApproval(approval_id=request.approval_id, decision="allow", command=edited)
        while answer is None:
            answer = parse_answer(request, _read_line(edit_prompt(request)), is_edited=True)
        return answer

    def _on_answer(self, answer: Answer) -> None:
        self._send(answer)
        self._pending_count -= 1
        if self._screen and not self._pending_count:
            self._screen.resume()


def is_decided(event: Event) -> bool:
    """Whether an event is an approval that needs no answer."""
    return isinstance(event, ApprovalRequested) and event.decided


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
    if word in ("e", "edit") and request.tool in EDITABLE_TOOLS:
        return None
    return ResolveApproval(approval_id=request.approval_id, decision="deny", remark="" if word in ("n", "no") else line)


def parse_choice(request: QuestionAsked, line: str) -> AnswerQuestion:
    """Return the option of that number or with that first letter, or the line itself."""
    index = int(line) - 1 if line.isdecimal() else -1
    answer = request.options[index] if 0 <= index < len(request.options) else line
    if len(line) == 1 and line.isalpha():
        begun = [option for option in request.options if option.casefold().startswith(line.casefold())]
        answer = begun[0] if len(begun) == 1 else line
    return AnswerQuestion(question_id=request.question_id, answer=answer)


def answer_prompt(request: InputRequest, *, is_folded: bool = False, width: int = 80) -> str:
    """Return the prompt of the answer line, wrapped between the keys."""
    if isinstance(request, QuestionAsked):
        return ANSWER_PROMPT
    if request.tool == MANIFEST_TOOL:
        return "\n".join(join_keys([_ONCE[0], _EDIT, _DENY], width, "  "))
    is_command = request.tool == COMMAND_TOOL
    # For a web page, the host is allowed rather than the one URL.
    is_host = not is_command and request.rule.startswith(f"{request.tool} ")
    keys = [text.format(what=rule_text(request) if is_host else _SAME) for text in _ONCE]
    keys += [text.format(rule=rule_text(request)) for text in _LASTING] if can_store_rule(request) else []
    keys += [*([_EDIT] if is_command else []), *([_VIEW] if is_folded else []), _DENY]
    return "\n".join(join_keys(keys, width, "  "))


def edit_prompt(request: InputRequest) -> str:
    """Return the prompt for an edited command."""
    if isinstance(request, ApprovalRequested) and request.tool == MANIFEST_TOOL:
        return EDIT_MANIFEST
    return f"run instead of {escape_hidden(request.command if isinstance(request, ApprovalRequested) else '')}\n> "


def request_id(request: InputRequest) -> str:
    """Return the id that the answer must carry."""
    return request.approval_id if isinstance(request, ApprovalRequested) else request.question_id


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
