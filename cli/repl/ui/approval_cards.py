"""Approvals and questions as cards: shown one at a time, answerable only after they were visible for a moment."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence

from agent.protocol.commands import Answer, AnswerQuestion, ResolveApproval
from agent.protocol.envelope import Envelope
from agent.protocol.events import MANIFEST_TOOL, ApprovalRequested, ApprovalResolved, QuestionAnswered, QuestionAsked
from agent.vocabulary.plan import LEAD
from cli.run.terminal_approvals import parse_choice, request_id
from cli.screen.cards import EDITABLE_TOOLS, CardRenderer, InputRequest, can_store_rule, join_keys, rule_text
from cli.screen.colors import Paint, clip_line, wrap
from tooling.contract.action import Scope
from tooling.contract.lazy_pattern import lazy_pattern

# Longer than the pause between two keystrokes of a user who is typing.
MIN_SEEN_S = 0.4
FOCUS_HINT = "press Tab to answer"
QUESTION_HINT = "type a number or your own answer"
DENY_HINT = "[n] no"
_KEY = lazy_pattern(r"\[\w\]")
_SCOPES: dict[str, Scope] = {"y": "once", "r": "run", "p": "project", "a": "always"}


class ApprovalCards:
    """A queue of approvals and questions; keys typed before a card was visible do not answer it."""

    def __init__(
        self,
        *,
        send: Callable[[Answer], bool],
        show: Callable[[Sequence[str]], None],
        paint: Paint,
        size: Callable[[], tuple[int, int]] = lambda: (80, 24),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send = send
        self._show = show
        self._paint = paint
        self._size = size
        self._now = now
        self._queue: deque[tuple[str, InputRequest]] = deque()
        self._drawn_at: float | None = None
        self._own_questions: dict[str, asyncio.Future[str]] = {}
        self._expected: set[str] = set()
        self.has_focus = False

    @property
    def current(self) -> InputRequest | None:
        """The card to answer now."""
        return self._queue[0][1] if self._queue else None

    @property
    def count(self) -> int:
        return len(self._queue)

    @property
    def current_id(self) -> str:
        """The id an answer to the current card must carry."""
        return request_id(self._queue[0][1]) if self._queue else ""

    @property
    def is_seen(self) -> bool:
        """Whether the current card was visible long enough for a key to be meant for it."""
        if self._drawn_at is None:
            return False
        return self.current_id in self._expected or self._now() - self._drawn_at >= MIN_SEEN_S

    @property
    def is_ready(self) -> bool:
        """Whether a key answers the current card."""
        return self.has_focus and self.is_seen

    def on_event(self, envelope: Envelope, *, is_typing: bool) -> None:
        """Add requested cards; remove answered and expired ones."""
        match envelope.event:
            case ApprovalRequested(decided=True):
                pass
            case ApprovalRequested() | QuestionAsked() as request:
                self._queue.append((envelope.step_id if envelope.step_id not in (None, LEAD) else "", request))
                if len(self._queue) == 1:
                    self._show_next(takes_focus=not is_typing)
            case ApprovalResolved(approval_id=answered) | QuestionAnswered(question_id=answered):
                self._drop(answered)
            case _:
                pass

    async def ask(self, question: str, options: tuple[str, ...], *, is_expected: bool = False) -> str:
        """Ask a question of the REPL itself, ahead of all other cards, and return the answer.

        An expected one, as in a dialog started by the user, may be answered at once.
        """
        request = QuestionAsked(question_id=f"own-{len(self._own_questions)}", question=question, options=options)
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._own_questions[request.question_id] = answer
        if is_expected:
            self._expected.add(request.question_id)
        self._queue.appendleft(("", request))
        self._show_next(takes_focus=True)
        try:
            return await answer
        finally:
            # Also if the run that asked was stopped meanwhile.
            self._drop(request.question_id)

    @property
    def has_own_question(self) -> bool:
        """Whether the current card is a question of the REPL itself."""
        return self.current_id in self._own_questions

    def decline_own(self) -> bool:
        """Answer a question of the REPL itself with its last option, which does nothing; False if none is shown."""
        request = self.current
        if not isinstance(request, QuestionAsked) or not self.has_own_question:
            return False
        answer = request.options[-1] if request.options else ""
        return self._resolve(AnswerQuestion(question_id=request.question_id, answer=answer))

    def clear(self) -> None:
        """Drop the cards of a run that has ended."""
        self._queue = deque(item for item in self._queue if request_id(item[1]) in self._own_questions)
        if self._queue:
            return
        self.has_focus, self._drawn_at = False, None

    def focus(self) -> None:
        """Direct keys to the card."""
        self.has_focus = bool(self._queue)

    def unfocus(self) -> None:
        """Direct keys to the prompt; the card stays."""
        self.has_focus = False

    def mark_drawn(self) -> None:
        """Record that the current card is visible now."""
        if self._queue and self._drawn_at is None:
            self._drawn_at = self._now()

    def answer_key(self, key: str) -> bool:
        """Answer an approval with one key; return False if the key has no meaning here."""
        request = self.current
        if not self.is_ready or not isinstance(request, ApprovalRequested):
            return False
        if key in _SCOPES and (key in ("y", "r") or can_store_rule(request)):
            return self._resolve(ResolveApproval(approval_id=request.approval_id, decision="allow", scope=_SCOPES[key]))
        if key == "n":
            return self._resolve(ResolveApproval(approval_id=request.approval_id, decision="deny"))
        return False

    def answer_text(self, line: str, *, is_command: bool = False) -> bool:
        """Answer with text: the answer to a question, a replacement command, or a reason for declining."""
        request = self.current
        if isinstance(request, QuestionAsked):
            return self._resolve(parse_choice(request, line))
        if isinstance(request, ApprovalRequested) and line:
            if is_command:
                return self._resolve(ResolveApproval(approval_id=request.approval_id, decision="allow", command=line))
            return self._resolve(ResolveApproval(approval_id=request.approval_id, decision="deny", remark=line))
        return False

    def lines(self, width: int, *, hint: str = "") -> list[str]:
        """Return the keys of the current card, or `hint`; the card itself is in the scrollback."""
        if not self._queue:
            return []
        step, request = self._queue[0]
        more = f" ({self.count - 1} more waiting)" if self.count > 1 else ""
        if hint:
            text = f"{hint}{more}"
        elif not self.has_focus:
            text = f"{f'{step} is ' if step else ''}waiting for you: {FOCUS_HINT}{more}"
        elif isinstance(request, QuestionAsked):
            text = f"{QUESTION_HINT}{more}"
        else:
            return _key_lines([*self._keys(request), *([more.strip()] if more else [])], width, self._paint)
        return [self._paint("strong", line) for line in wrap(text, width)]

    def full_text(self) -> str:
        """Return everything about the current approval, for a pager; empty if there is none."""
        request = self.current
        return self._card().full_text(request) if isinstance(request, ApprovalRequested) else ""

    def _card(self) -> CardRenderer:
        columns, rows = self._size()
        return CardRenderer(paint=self._paint, width=columns, rows=rows)

    def _keys(self, request: ApprovalRequested) -> list[str]:
        return [
            "[y] once",
            *([] if request.tool == MANIFEST_TOOL else ["[r] this run"]),
            *(["[p] this folder", "[a] always"] if can_store_rule(request) else []),
            *(["[e] edit"] if request.tool in EDITABLE_TOOLS else []),
            DENY_HINT,
            "[w] say why not",
            *(["[v] view all"] if self._card().is_folded(request) else []),
        ]

    def _resolve(self, answer: Answer) -> bool:
        own = self._own_questions.get(answer.question_id) if isinstance(answer, AnswerQuestion) else None
        if own is not None and isinstance(answer, AnswerQuestion):
            own.set_result(answer.answer)
        is_sent = own is not None or self._send(answer)
        self._drop(answer.approval_id if isinstance(answer, ResolveApproval) else answer.question_id)
        return is_sent

    def _drop(self, answered: str) -> None:
        was_first = bool(self._queue) and request_id(self._queue[0][1]) == answered
        self._queue = deque(item for item in self._queue if request_id(item[1]) != answered)
        if was_first:
            self._show_next(takes_focus=self.has_focus)

    def _show_next(self, *, takes_focus: bool) -> None:
        self._drawn_at = None
        self.has_focus = takes_focus and bool(self._queue)
        if not self._queue:
            return
        step, request = self._queue[0]
        lasting = _rule_lines(request, self._paint) if isinstance(request, ApprovalRequested) else []
        # In the scrollback, where it remains readable.
        self._show([*self._card().lines(request, step=step), *lasting])


def _rule_lines(request: ApprovalRequested, paint: Paint) -> list[str]:
    return [paint("quiet", f"  [p] and [a] save the rule {rule_text(request)}")] if can_store_rule(request) else []


def _key_lines(keys: Sequence[str], width: int, paint: Paint) -> list[str]:
    return [_KEY.sub(lambda key: paint("strong", key[0]), clip_line(line, width)) for line in join_keys(keys, width)]
