"""One step's conversation, told again from its events: every call has a result, as every provider demands."""

from collections.abc import Callable, Iterable

from agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    FilesChanged,
    MessageSaid,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolStarted,
)
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.step import CallFact
from agent.vocabulary.unfinished import TRY_AGAIN, UNKNOWN_CALL, UnfinishedStep, missing_result
from tooling.contract.action import Effect
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import CANCELLED

PREVIEW_CHARS = 2000
_REFUSED = frozenset({"denied", "deferred", "blocked"})
EffectOf = Callable[[str], Effect | None]


@dataclass(slots=True)
class _RecordedCall:
    """A call on its way."""

    call: ToolCall
    has_started: bool = False
    result: Message | None = None
    fact: CallFact | None = None


class _StepHistory:
    """A conversation that grows event by event."""

    def __init__(self, effect_of: EffectOf) -> None:
        self._effect_of = effect_of
        self.messages: list[Message] = []
        self.facts: list[CallFact] = []
        self.turns = 0
        # Calls that no model asked for: the one of a tool step, and checks.
        self.internal_calls: list[_RecordedCall] = []
        self._pending_calls: list[_RecordedCall] = []
        self._pending_approvals: set[str] = set()
        self._changed_paths: list[str] = []
        self._has_ended = False

    def apply(self, envelope: Envelope) -> None:
        match envelope.event:
            case StepStarted():
                self.resume()
            case MessageSaid(delta=False) as said:
                self._add_message(said)
            case ToolStarted() as started:
                self._start_call(started)
            case FilesChanged(changes=changes):
                self._changed_paths += [change.path for change in changes]
            case ToolCompleted() as completed:
                self._complete_call(completed)
            case ApprovalRequested(approval_id=approval_id):
                self._pending_approvals.add(approval_id)
            case ApprovalResolved(approval_id=approval_id):
                self._pending_approvals.discard(approval_id)
            case StepCompleted():
                self._has_ended = True
            case _:
                pass

    def resume(self) -> None:
        """Make it ready for the next run, which has turns of its own and may try again what was refused."""
        self.close_turn()
        if self._has_ended:
            self.turns, self._has_ended = 0, False
            if any(fact.status in _REFUSED for fact in self.facts):
                self.messages.append(Message(role="user", content=TRY_AGAIN))

    def close_turn(self) -> None:
        """Give every call of the last turn its result, in the order in which they were asked for."""
        for one in self._pending_calls:
            self.messages.append(one.result or self._missing_message(one))
        self._pending_calls = []
        self._pending_approvals.clear()

    def _add_message(self, said: MessageSaid) -> None:
        self.close_turn()
        if said.role == "user":
            self.messages.append(Message(role="user", content=said.content))
        elif said.role == "assistant":
            calls = tuple(ToolCall(id=call.id, name=call.name, arguments=call.input) for call in said.tool_calls or ())
            message = Message(
                role="assistant",
                content=said.content,
                tool_calls=calls,
                reasoning=said.reasoning or "",
                reasoning_signature=said.reasoning_signature,
            )
            self.messages.append(message)
            self.turns += 1
            self._pending_calls = [_RecordedCall(call) for call in calls]

    def _start_call(self, started: ToolStarted) -> None:
        waiting = (one for one in self._pending_calls if one.call.id == started.tool_id and not one.has_started)
        one = next(waiting, None)
        if one is None:
            one = _RecordedCall(ToolCall(id=started.tool_id, name=started.name, arguments=started.input))
            self.internal_calls.append(one)
        one.has_started = True

    def _complete_call(self, completed: ToolCompleted) -> None:
        running = (
            one
            for one in (*self._pending_calls, *self.internal_calls)
            if one.call.id == completed.tool_id and not one.result
        )
        one = next(running, None)
        if one is None:
            return
        one.result = Message(role="tool", content=completed.output, tool_call_id=one.call.id)
        one.fact = self._fact(one.call, completed)
        if one not in self.internal_calls:
            self.facts.append(one.fact)
        self._changed_paths = []

    def _fact(self, call: ToolCall, completed: ToolCompleted) -> CallFact:
        return CallFact(
            tool=call.name,
            args=call.arguments,
            status=completed.status,
            exit_code=completed.exit_code,
            output_len=len(completed.output),
            output_preview=completed.output[:PREVIEW_CHARS],
            changed=tuple(self._changed_paths),
        )

    def _missing_message(self, one: _RecordedCall) -> Message:
        text = self.missing_text(one)
        fact = CallFact(
            tool=one.call.name,
            args=one.call.arguments,
            status="cancelled",
            exit_code=CANCELLED,
            output_len=len(text),
            output_preview=text,
        )
        self.facts.append(fact)
        return Message(role="tool", content=text, tool_call_id=one.call.id)

    def missing_text(self, one: _RecordedCall) -> str:
        # Whoever still waited for a yes had not begun; calls with effects wait one by one.
        had_begun = one.has_started and not self._pending_approvals
        # What a tool does that nobody knows any more, nobody knows.
        return missing_result(self._effect_of(one.call.name) or "execute", had_started=had_begun)


def unfinished_task(events: Iterable[Envelope], effect_of: EffectOf) -> UnfinishedStep | None:
    """Return the conversation of a step that a model worked on, None when nothing was said in it."""
    talk = _replay(events, effect_of)
    talk.resume()
    if not talk.messages:
        return None
    return UnfinishedStep(messages=tuple(talk.messages), facts=tuple(talk.facts), turns=talk.turns)


def unfinished_call(events: Iterable[Envelope], effect_of: EffectOf, step_id: str) -> UnfinishedStep | None:
    """Return what became of the one call of a tool step, None when it can be made as if for the first time."""
    talk = _replay(events, effect_of)
    calls = [one for one in talk.internal_calls if not one.call.id.startswith(f"{step_id}.check.")]
    if not calls:
        return None
    last = calls[-1]
    if last.fact and last.fact.success and last.result:
        return UnfinishedStep(messages=(last.result,), facts=(last.fact,))
    text = last.result.content if last.result else talk.missing_text(last)
    if text != UNKNOWN_CALL:
        return None
    return UnfinishedStep(messages=(Message(role="tool", content=text, tool_call_id=last.call.id),))


def _replay(events: Iterable[Envelope], effect_of: EffectOf) -> _StepHistory:
    talk = _StepHistory(effect_of)
    for envelope in events:
        talk.apply(envelope)
    return talk
