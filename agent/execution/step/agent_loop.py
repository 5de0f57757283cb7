"""The agent loop of one step: ask the model, run the tools it calls, and repeat until it answers."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from agent.execution.step.context import CHARS_PER_TOKEN, CONTINUE_PROMPT, ContextTrimmer, Conversation, size_of
from agent.execution.step.control import StepControl
from agent.execution.step.prompts import step_message
from agent.execution.step.step_result import StepResult
from agent.execution.step.tool_calls import ToolCallRunner
from agent.model.faults import ModelFault
from agent.model.metered_client import MeteredModel
from agent.model.port import ModelReply, ModelRequest, ReasoningDelta, TextDelta
from agent.protocol.channel import Channel
from agent.protocol.events import CallMade, MessageAdded
from agent.vocabulary import exit_codes
from agent.vocabulary.message import Message
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import CallFact, ExecutorProfile, ExecutorRequest
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass

MAX_FAILED_TURNS = 3
_REFUSED = frozenset({"blocked", "denied", "deferred"})


class FailureStreak:
    """Counts consecutive turns in which every call failed.

    A new command that fails is information, not a lack of progress: that is how debugging works.
    """

    def __init__(self) -> None:
        self._turns = 0
        self._unproductive = 0
        self._refused = 0
        self._tried: set[str] = set()

    def record(self, facts: Sequence[CallFact]) -> StepStatus | None:
        """Return the status the step must end with after this turn, or None to continue."""
        if any(fact.success for fact in facts):
            self._turns = self._unproductive = self._refused = 0
            return None
        self._turns += 1
        self._refused = self._refused + 1 if all(fact.status in _REFUSED for fact in facts) else 0
        self._unproductive = 0 if self._has_new_errors(facts) else self._unproductive + 1
        if self._refused >= MAX_FAILED_TURNS:
            return "blocked"
        return "error" if self._turns >= MAX_FAILED_TURNS and self._unproductive >= MAX_FAILED_TURNS - 1 else None

    def _has_new_errors(self, facts: Sequence[CallFact]) -> bool:
        commands = {str(fact.args) for fact in facts if fact.tool == "run_command" and fact.status == "error"}
        new = commands - self._tried
        self._tried |= commands
        return bool(new)


# The second repetition gets a warning, the third ends the step.
WARN_AT, STOP_AT = 2, 3
_MUTATING = frozenset({"write", "execute"})


class RepetitionDetector:
    """Counts how often a call returned the same result.

    A new call with side effects resets the count: tests that still fail after another edit are work, not a loop.
    """

    def __init__(self, effect_of: Callable[[str], str | None]) -> None:
        self._effect_of = effect_of
        self._seen: Counter[str] = Counter()

    def record(self, facts: Sequence[CallFact]) -> int:
        """Return how often all calls of this turn have been repeated so far; 0 if any was new."""
        fingerprints = [_fingerprint(fact) for fact in facts]
        for fact, fingerprint in zip(facts, fingerprints, strict=True):
            if fingerprint not in self._seen and self._effect_of(fact.tool) in _MUTATING:
                self._seen.clear()
        self._seen.update(fingerprints)
        return min((self._seen[fingerprint] - 1 for fingerprint in fingerprints), default=0)


def _fingerprint(fact: CallFact) -> str:
    call = json.dumps([fact.tool, dict(fact.args)], sort_keys=True, default=str)
    return f"{call} {fact.status} {fact.exit_code} {fact.output_len} {fact.output_preview}"


_SURPRISE_LINE = re.compile(r"^[\s>*_`#-]*SURPRISE:[*_`]*\s*(?P<why>.*?)[\s*_`]*$")


def split_surprise(answer: str) -> tuple[str, str]:
    """Split the SURPRISE line off the end of an answer."""
    before, _, last = answer.rstrip().rpartition("\n")
    found = _SURPRISE_LINE.match(last)
    if found is None:
        return answer, ""
    why = found["why"] or "the plan no longer fits"
    return before.rstrip() or why, why


_STEERING_PREFIX = "The user adds, while you work: "
_ASK_FOR_RESULT = "Go on: reply with the result, or call a tool."
_REPEATED = "You already made this call with the same result. Try something else, or reply with what you have."
_OVERFLOW_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """Settings shared by the loops of all steps of a run."""

    model: str
    system: Message
    context_tokens: Callable[[str], int]
    max_output_tokens: int
    temperature: float | None = None


@dataclass(slots=True, kw_only=True)
class _LoopState:
    """The state of one loop: the constant opening messages and the growing conversation."""

    model: str
    ctx: ExecCtx
    opening: tuple[Message, ...]
    conversation: Conversation
    limit_tokens: int
    tools: tuple[dict[str, object], ...]


class _StallDetector:
    """The stall detection of one loop."""

    def __init__(self, calls: ToolCallRunner) -> None:
        self.streak = FailureStreak()
        self.repetition = RepetitionDetector(calls.effect_of)


class AgentRunner:
    """Runs one step with a model and tools; every message and call is emitted as an event."""

    def __init__(
        self,
        *,
        client: MeteredModel,
        calls: ToolCallRunner,
        channel: Channel,
        settings: RunnerSettings,
        control: StepControl | None = None,
    ) -> None:
        self._control = control or StepControl()
        self._client = client
        self._calls = calls
        self._channel = channel
        self._settings = settings
        self._trimmer = ContextTrimmer(client=client)
        self._has_stalled = False

    async def run(
        self, request: ExecutorRequest, profile: ExecutorProfile, ctx: ExecCtx, conversation: Conversation
    ) -> StepResult:
        """Loop until the model answers, stalls or reaches the turn limit, starting from the given conversation."""
        loop = self._start_loop(request, ctx, conversation)
        if answer := conversation.last_answer:
            return _answer_result(answer, conversation)
        stalls, has_asked, truncated = _StallDetector(self._calls), False, conversation.truncated_answer
        while conversation.turns < profile.max_turns:
            await self._deliver_steering(loop)
            try:
                reply = await self._turn(loop)
            except ModelFault as fault:
                # A small model may return nothing once the work is done; asked for the result, it gives it.
                if fault.kind != "empty" or has_asked or not conversation.facts:
                    raise
                has_asked = True
                await self._add_user_message(loop, _ASK_FOR_RESULT)
                continue
            text = reply.message.content
            if reply.message.tool_calls:
                facts = await self._calls.run_turn(reply.message.tool_calls, conversation, ctx)
                if result := await self._check_stalled(loop, facts, stalls):
                    return result
            elif text.strip() and reply.finish_reason == "length":
                if truncated:
                    return StepResult(status="partial", text=truncated + text)
                truncated = text
                await self._add_user_message(loop, CONTINUE_PROMPT)
            elif answer := (truncated + text).strip():
                if self._control.has_messages(ctx.step_id):
                    # Not done yet: the user has just sent a message.
                    continue
                return _answer_result(answer, conversation)
            elif has_asked:
                return StepResult(status="error", reason="The model gave no answer.", exit_code=exit_codes.FAILED)
            else:
                has_asked = True
                await self._add_user_message(loop, _ASK_FOR_RESULT)
        return StepResult(status="partial", text=_turn_limit_text(conversation), exit_code=exit_codes.LIMIT)

    async def _check_stalled(
        self, loop: _LoopState, facts: Sequence[CallFact], stalls: _StallDetector
    ) -> StepResult | None:
        """Return the result of a step that has stalled, or None to continue."""
        if status := stalls.streak.record(facts):
            return StepResult(status=status, text=_failure_text(facts), exit_code=exit_codes.TOOL_FAILED)
        repeated = stalls.repetition.record(facts)
        if repeated == WARN_AT:
            await self._add_user_message(loop, _REPEATED)
        if repeated < STOP_AT:
            return None
        reason = f"The step repeats itself: {facts[-1].tool} gave the same result {repeated + 1} times."
        # A new plan may resolve the first stall; replanning after every one would never end.
        surprise, self._has_stalled = "" if self._has_stalled else reason, True
        return StepResult(status="error", reason=reason, exit_code=exit_codes.FAILED, surprise=surprise)

    def _start_loop(self, request: ExecutorRequest, ctx: ExecCtx, conversation: Conversation) -> _LoopState:
        model = request.model or self._settings.model
        return _LoopState(
            model=model,
            ctx=ctx,
            opening=(self._settings.system, step_message(request)),
            conversation=conversation,
            limit_tokens=self._context_limit(model),
            tools=self._calls.schemas(ctx),
        )

    def _context_limit(self, model: str) -> int:
        """Return the tokens a conversation may use; a reply gets at most half of a small context window."""
        window = self._settings.context_tokens(model)
        return max(window - self._settings.max_output_tokens, window // 2)

    async def _turn(self, loop: _LoopState) -> ModelReply:
        loop.conversation.turns += 1
        reply = await self._ask_model(loop)
        loop.conversation.messages.append(reply.message)
        calls = tuple(CallMade(id=call.id, name=call.name, input=call.arguments) for call in reply.message.tool_calls)
        event = MessageAdded(
            role="assistant",
            content=reply.message.content,
            tool_calls=calls or None,
            # Some providers reject a history in which the reasoning before a call is missing.
            reasoning=(reply.message.reasoning or None) if calls else None,
            reasoning_signature=reply.message.reasoning_signature if calls else None,
            reasoning_model=reply.message.reasoning_model if calls else None,
            # The cost counts even if the step never ends.
            spent=reply.usage,
        )
        # No need to wait: it reaches the disk with the next awaited event, the start of a call or the end of the step.
        self._channel.emit(event, step_id=loop.ctx.step_id, attempt=loop.ctx.attempt)
        return reply

    async def _ask_model(self, loop: _LoopState) -> ModelReply:
        """Send the conversation; if the provider reports that it is too long, shorten it and retry."""
        for attempt in range(_OVERFLOW_TRIES + 1):
            opening = self._model_request(loop, loop.opening)
            await self._trimmer.trim(loop.conversation, opening, loop.limit_tokens)
            request = replace(opening, messages=(*loop.opening, *loop.conversation.messages))
            try:
                return await self._stream_reply(request, loop.ctx)
            except ModelFault as fault:
                if fault.kind != "overflow" or attempt == _OVERFLOW_TRIES:
                    raise
                loop.limit_tokens = min(loop.limit_tokens, size_of(request.messages) // CHARS_PER_TOKEN) // 2
        raise AssertionError("unreachable")

    def _model_request(self, loop: _LoopState, messages: tuple[Message, ...]) -> ModelRequest:
        return ModelRequest(
            model=loop.model,
            messages=messages,
            tools=loop.tools,
            purpose="step",
            step_id=loop.ctx.step_id,
            max_output_tokens=self._settings.max_output_tokens,
            temperature=self._settings.temperature,
        )

    async def _stream_reply(self, request: ModelRequest, ctx: ExecCtx) -> ModelReply:
        """Return the reply, emitting its text and the thoughts before it as they arrive."""
        reply: ModelReply | None = None
        async with aclosing(self._client.stream(request)) as items:
            async for item in items:
                if isinstance(item, TextDelta):
                    event = MessageAdded(role="assistant", content=item.text, delta=True)
                    self._channel.emit(event, step_id=ctx.step_id, attempt=ctx.attempt)
                elif isinstance(item, ReasoningDelta):
                    event = MessageAdded(role="thought", content=item.text, delta=True)
                    self._channel.emit(event, step_id=ctx.step_id, attempt=ctx.attempt)
                elif isinstance(item, ModelReply):
                    reply = item
        assert reply is not None
        return reply

    async def _deliver_steering(self, loop: _LoopState) -> None:
        for text in self._control.pop_messages(loop.ctx.step_id):
            await self._add_user_message(loop, f"{_STEERING_PREFIX}{text}")

    async def _add_user_message(self, loop: _LoopState, text: str) -> None:
        """Add a user message between turns and publish it."""
        loop.conversation.messages.append(Message(role="user", content=text))
        event = MessageAdded(role="user", content=text)
        await self._channel.publish(event, step_id=loop.ctx.step_id, attempt=loop.ctx.attempt)


def _answer_result(answer: str, conversation: Conversation) -> StepResult:
    text, surprise = split_surprise(answer)
    # A cancelled call is not a failure: the step continued after it.
    is_complete = all(fact.success or fact.status == "cancelled" for fact in conversation.facts)
    return StepResult(status="ok" if is_complete else "partial", text=text, surprise=surprise)


def _failure_text(facts: Sequence[CallFact]) -> str:
    last = facts[-1]
    return f"Gave up: the last calls all failed. Last error of {last.tool}: {last.output_preview}"


def _turn_limit_text(conversation: Conversation) -> str:
    recent = "\n".join(f"- {fact.tool}: {fact.output_preview[:300]}" for fact in conversation.facts[-3:])
    return f"Stopped at the limit of {conversation.turns} turns before the step was finished. Last results:\n{recent}"
