"""Rebuilds a step's conversation from its events; every call gets a result, as providers require."""

from collections.abc import Callable, Iterable

from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    ContextCompacted,
    EffectRecorded,
    FilesChanged,
    MessageAdded,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolStarted,
)
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.plan import PLAN_TOOL
from agent.vocabulary.step import CallFact
from agent.vocabulary.unfinished import (
    DONE_CALL,
    FINISH,
    GO_ON,
    INTERRUPTED_REPLY,
    TRY_AGAIN,
    UNKNOWN_CALL,
    UNKNOWN_EFFECT,
    UnfinishedStep,
    missing_result,
)
from tooling.contract.action import Effect
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import CANCELLED

PREVIEW_CHARS = 2000
_REFUSED = frozenset({"denied", "deferred", "blocked"})
EffectOf = Callable[[str], Effect | None]


@dataclass(slots=True)
class _RecordedCall:
    """A tool call and the known part of its result."""

    call: ToolCall
    has_started: bool = False
    result: Message | None = None
    fact: CallFact | None = None


class StepHistory:
    """Accumulates a conversation event by event: one step's, or the lead's over all runs of a session."""

    def __init__(self, effect_of: EffectOf) -> None:
        self._effect_of = effect_of
        self.messages: list[Message] = []
        self.facts: list[CallFact] = []
        self.turns = 0
        # Calls that no model requested: the call of a tool step, and checks.
        self.internal_calls: list[_RecordedCall] = []
        self._pending_calls: list[_RecordedCall] = []
        self._pending_approvals: set[str] = set()
        self._effects: dict[str | None, EffectRecorded] = {}
        self._changed_paths: list[str] = []
        self._has_ended = False
        self._is_interrupted = False
        # Whether the step or run ended without success despite an answer: on resume the work continues.
        self.has_failed = False

    def apply(self, envelope: Envelope) -> None:
        match envelope.event:
            case StepStarted():
                self.resume()
            case MessageAdded(delta=False) as added:
                self._add_message(added)
            case ToolStarted() as started:
                self._start_call(started)
            case FilesChanged(changes=changes, command_id=None):
                self._changed_paths += [change.path for change in changes]
            case EffectRecorded() as effect:
                self._effects[effect.call_id] = effect
            case ToolCompleted() as completed:
                self._complete_call(completed)
            case ApprovalRequested(approval_id=approval_id):
                self._pending_approvals.add(approval_id)
            case ApprovalResolved(approval_id=approval_id):
                self._pending_approvals.discard(approval_id)
            case ContextCompacted(compaction=compaction):
                self.close_turn()
                self.messages = compaction.apply(self.messages)
            case StepCompleted(status=status):
                self._has_ended, self.has_failed = True, status == "partial"
            case _:
                pass

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """The unfinished calls that delegated steps."""
        return tuple(pending.call for pending in self._pending_calls if _can_repeat(pending))

    def start_request(self, message: Message) -> None:
        """Start the next request of the conversation; unfinished calls stay unfinished."""
        self.close_turn()
        self.messages.append(message)
        self.facts, self.internal_calls = [], []
        self.turns, self._has_ended, self.has_failed = 0, False, False

    def resume(self) -> None:
        """Prepare for the next run, which has its own turn limit and may retry refused calls."""
        still_open = [pending for pending in self._pending_calls if _can_repeat(pending)]
        self._pending_calls = [pending for pending in self._pending_calls if not _can_repeat(pending)]
        self.close_turn()
        self._pending_calls = still_open
        for pending in still_open:
            pending.has_started = False
        if self.messages and self.messages[-1].role == "assistant" and self._is_interrupted:
            self.messages.append(Message(role="user", content=GO_ON))
        if self._has_ended:
            self.turns, self._has_ended = 0, False
            if any(fact.status in _REFUSED for fact in self.facts):
                self.messages.append(Message(role="user", content=TRY_AGAIN))
            elif self.has_failed and self.messages and self.messages[-1].role == "assistant":
                self.messages.append(Message(role="user", content=FINISH))
        self.has_failed = False

    def close_turn(self) -> None:
        """Append a result for every call of the last turn, in the order of the calls."""
        for pending in self._pending_calls:
            self.messages.append(pending.result or self._missing_message(pending))
        self._pending_calls = []
        self._pending_approvals.clear()

    def _add_message(self, event: MessageAdded) -> None:
        self.close_turn()
        if event.role == "user":
            self.messages.append(Message(role="user", content=event.content, images=event.images or ()))
        elif event.role == "assistant":
            calls = tuple(ToolCall(id=call.id, name=call.name, arguments=call.input) for call in event.tool_calls or ())
            self._is_interrupted = event.interrupted
            message = Message(
                role="assistant",
                content=f"{event.content.rstrip()} {INTERRUPTED_REPLY}" if event.interrupted else event.content,
                tool_calls=calls,
                reasoning=event.reasoning or "",
                reasoning_signature=event.reasoning_signature,
                reasoning_model=event.reasoning_model,
            )
            self.messages.append(message)
            self.turns += 1
            self._pending_calls = [_RecordedCall(call) for call in calls]

    def _start_call(self, started: ToolStarted) -> None:
        waiting = (call for call in self._pending_calls if call.call.id == started.tool_id and not call.has_started)
        recorded = next(waiting, None)
        if recorded is None:
            recorded = _RecordedCall(ToolCall(id=started.tool_id, name=started.name, arguments=started.input))
            self.internal_calls.append(recorded)
        recorded.has_started = True

    def _complete_call(self, completed: ToolCompleted) -> None:
        running = (
            call
            for call in (*self._pending_calls, *self.internal_calls)
            if call.call.id == completed.tool_id and not call.result
        )
        recorded = next(running, None)
        if completed.status != "cancelled":
            self._effects.pop(completed.tool_id, None)
        if recorded is None or (_can_repeat(recorded) and completed.status == "cancelled"):
            return
        recorded.result = Message(
            role="tool", content=completed.output, tool_call_id=recorded.call.id, images=completed.images or ()
        )
        recorded.fact = self._fact(recorded.call, completed)
        if recorded not in self.internal_calls:
            self.facts.append(recorded.fact)
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

    def _missing_message(self, recorded: _RecordedCall) -> Message:
        text = self.missing_text(recorded)
        fact = CallFact(
            tool=recorded.call.name,
            args=recorded.call.arguments,
            status="cancelled",
            exit_code=CANCELLED,
            output_len=len(text),
            output_preview=text,
        )
        self.facts.append(fact)
        return Message(role="tool", content=text, tool_call_id=recorded.call.id)

    def missing_text(self, recorded: _RecordedCall) -> str:
        if (effect := self._effects.get(recorded.call.id)) and not effect.safe and recorded.result is None:
            return DONE_CALL if effect.status == "done" else UNKNOWN_EFFECT
        # A call still waiting for approval had not started; calls with effects wait one at a time.
        has_started = recorded.has_started and not self._pending_approvals
        # A tool that no longer exists may have had any effect.
        return missing_result(self._effect_of(recorded.call.name) or "execute", had_started=has_started)


def _can_repeat(recorded: _RecordedCall) -> bool:
    """Whether an unfinished call is repeated on resume: delegated steps keep their results."""
    return recorded.result is None and recorded.call.name == PLAN_TOOL


def unfinished_task(events: Iterable[Envelope], effect_of: EffectOf) -> UnfinishedStep | None:
    """Return the conversation of a task step, or None if it is empty."""
    history = _replay(events, effect_of)
    history.resume()
    if not history.messages:
        return None
    return UnfinishedStep(
        messages=tuple(history.messages),
        open_calls=history.open_calls,
        facts=tuple(history.facts),
        turns=history.turns,
    )


def unfinished_call(events: Iterable[Envelope], effect_of: EffectOf, step_id: str) -> UnfinishedStep | None:
    """Return the outcome of a tool step's call, or None if the call can safely be repeated."""
    history = _replay(events, effect_of)
    calls = [recorded for recorded in history.internal_calls if not recorded.call.id.startswith(f"{step_id}.check.")]
    if not calls:
        return None
    last = calls[-1]
    if last.fact and last.fact.success and last.result:
        return UnfinishedStep(messages=(last.result,), facts=(last.fact,))
    text = last.result.content if last.result else history.missing_text(last)
    if text == DONE_CALL:
        fact = CallFact(
            tool=last.call.name,
            args=last.call.arguments,
            status="ok",
            exit_code=0,
            output_len=len(text),
            output_preview=text,
        )
        return UnfinishedStep(messages=(Message(role="tool", content=text, tool_call_id=last.call.id),), facts=(fact,))
    # An effect outside the workspace is not repeated without asking, even if the call is repeated.
    if text != UNKNOWN_CALL:
        return None
    return UnfinishedStep(messages=(Message(role="tool", content=text, tool_call_id=last.call.id),))


def _replay(events: Iterable[Envelope], effect_of: EffectOf) -> StepHistory:
    history = StepHistory(effect_of)
    for envelope in events:
        history.apply(envelope)
    return history
