"""The agent loop of one step: ask the model, run the tools it calls, and repeat until it answers."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

from agent.execution.step.compact import ContextCompactor, ContextSize, size_of, tokens_of
from agent.execution.step.context import Conversation
from agent.execution.step.control import StepControl
from agent.execution.step.described_change import MAKE_THE_CHANGE, describes_change, may_have_changed
from agent.execution.step.prompts import step_message
from agent.execution.step.stalls import MUTATING, STOP_AT, WARN_AT, StallDetector, split_surprise
from agent.execution.step.step_result import StepResult
from agent.execution.step.step_status import answer_status
from agent.execution.step.tool_calls import ToolCallRunner
from agent.model.faults import FAULTS, FaultKind, ModelFault
from agent.model.metered_client import MeteredModel
from agent.model.port import (
    CUT_OFF,
    MAX_CONTINUATIONS,
    PAUSED,
    CallDelta,
    ModelReply,
    ModelRequest,
    ReasoningDelta,
    StreamRestarted,
    TextDelta,
)
from agent.protocol.channel import Channel
from agent.protocol.events import CallMade, MessageAdded
from agent.vocabulary import exit_codes
from agent.vocabulary.message import Message
from agent.vocabulary.plan import LEAD, PLAN_TOOL
from agent.vocabulary.step import CallFact, ExecutorProfile, ExecutorRequest
from agent.vocabulary.usage import Usage
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass

_STEERING_PREFIX = "The user adds, while you work: "
_ASK_FOR_RESULT = "Go on: reply with the result, or call a tool."
_SHORTFALLS: dict[str, tuple[str, FaultKind]] = {
    CUT_OFF: ("its answer was cut off at the length limit", "cut_off"),
    PAUSED: ("the provider paused its answer again and again", "paused"),
}
_NOT_DONE = "The reply describes a change, but nothing was changed."
_REPEATED = "You already made this call with the same result. Try something else, or reply with what you have."
_OVERFLOW_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """Settings shared by the loops of all steps of a run; without `may_change` the answer is a proposal."""

    model: str
    system: Message
    context_tokens: Callable[[str], int]
    max_output_tokens: int
    temperature: float | None = None
    cache_key: str | None = None
    may_change: bool = True


class Delegation(Protocol):
    """The steps that the lead delegates."""

    def begin_turn(self, messages: Sequence[Message]) -> None:
        """Store the lead's conversation at its next turn, from which forked steps start."""
        ...

    def feed(self, fragment: CallDelta) -> None:
        """Start the steps of a plan that is still streaming."""
        ...

    def restart(self) -> None:
        """Discard an interrupted plan."""
        ...

    async def unreported(self) -> str:
        """Wait for all steps and return the results that the lead has not seen."""
        ...


@dataclass(slots=True, kw_only=True)
class _LoopState:
    """The state of one loop: the constant opening messages and the growing conversation."""

    goal: str
    model: str
    ctx: ExecCtx
    opening: tuple[Message, ...]
    conversation: Conversation
    size: ContextSize
    tools: tuple[Mapping[str, object], ...]
    max_retries: int | None = None
    has_nudged: bool = False


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
        delegation: Delegation | None = None,
        check_answer: Callable[[str], Awaitable[str]] | None = None,
    ) -> None:
        self._check_answer = check_answer
        self._control = control or StepControl()
        self._delegation = delegation
        self._client = client
        self._calls = calls
        self._channel = channel
        self._settings = settings
        self._compactor = ContextCompactor(client=client, channel=channel, effect_of=calls.effect_of)
        self._has_stalled = False

    async def run(
        self, request: ExecutorRequest, profile: ExecutorProfile, ctx: ExecCtx, conversation: Conversation
    ) -> StepResult:
        """Loop until the model answers, stalls or reaches the turn limit, starting from the given conversation."""
        loop = self._start_loop(request, profile, ctx, conversation)
        await self._repeat_open_calls(loop)
        if (answer := conversation.last_answer) and (result := await self._finish(loop, answer)):
            return result
        stalls, has_asked, truncated = StallDetector(self._calls.effect_of), False, conversation.truncated_answer
        continued = 1 if truncated else 0
        while conversation.turns < profile.max_turns:
            await self._deliver_steering(loop)
            try:
                reply = await self._turn(loop)
            except ModelFault as fault:
                # A small model may return nothing when the work is done, but gives the result if asked for it.
                if fault.kind != "empty" or has_asked:
                    raise
                has_asked = True
                await self._add_user_message(loop, _ASK_FOR_RESULT)
                continue
            text = reply.message.content
            if reply.message.tool_calls:
                facts = await self._calls.run_turn(reply.message.tool_calls, conversation, ctx)
                if result := await self._check_stalled(loop, facts, stalls):
                    return result
            elif text.strip() and reply.is_incomplete:
                truncated, continued = truncated + text, continued + 1
                if continued > MAX_CONTINUATIONS[reply.finish_reason]:
                    shortfall, kind = _SHORTFALLS[reply.finish_reason]
                    return StepResult(status="partial", text=truncated, shortfall=shortfall, hint=FAULTS[kind].hint)
                await self._add_user_message(loop, reply.continue_prompt)
            elif answer := (truncated + text).strip():
                if self._control.has_messages(ctx.step_id):
                    # Not finished: the user has just sent a message.
                    continue
                if result := await self._finish(loop, answer):
                    return result
                truncated, continued = "", 0
            elif has_asked:
                return StepResult(status="error", reason="The model gave no answer.", exit_code=exit_codes.FAILED)
            else:
                has_asked = True
                await self._add_user_message(loop, _ASK_FOR_RESULT)
        return StepResult(status="partial", text=_turn_limit_text(conversation), exit_code=exit_codes.LIMIT)

    async def _finish(self, loop: _LoopState, answer: str) -> StepResult | None:
        """Return the result of an answer, or None if the work continues after it."""
        if self._delegation and loop.ctx.step_id == LEAD and (results := await self._delegation.unreported()):
            await self._add_user_message(loop, results)
            return None
        if self._check_answer and loop.ctx.step_id == LEAD and (reason := await self._check_answer(answer)):
            await self._add_user_message(loop, reason)
            return None
        result = self._answer_result(answer, loop.conversation)
        is_proposal = not self._settings.may_change
        if is_proposal or not describes_change(loop.goal, answer) or self._has_changed_something(loop):
            return result
        if not loop.has_nudged:
            loop.has_nudged = True
            await self._add_user_message(loop, MAKE_THE_CHANGE)
            return None
        return replace(result, status="error", reason=_NOT_DONE, exit_code=exit_codes.FAILED)

    def _answer_result(self, answer: str, conversation: Conversation) -> StepResult:
        text, surprise = split_surprise(answer)
        effect_of, is_proposal = self._calls.effect_of, not self._settings.may_change
        # A proposal was not meant to change anything.
        facts = [fact for fact in conversation.facts if not (is_proposal and effect_of(fact.tool) in MUTATING)]
        ending = answer_status(facts, effect_of)
        return StepResult(
            status=ending.status,
            text=text,
            surprise=surprise,
            shortfall=ending.shortfall,
            questions=ending.questions,
        )

    def _has_changed_something(self, loop: _LoopState) -> bool:
        facts = loop.conversation.facts
        mutating = [fact for fact in facts if fact.success and self._calls.effect_of(fact.tool) in MUTATING]
        is_planned = any(fact.tool == PLAN_TOOL for fact in facts)
        return is_planned or any(may_have_changed(fact.tool, fact.args) for fact in mutating)

    async def _repeat_open_calls(self, loop: _LoopState) -> None:
        """Repeat calls that delegated steps when the run was interrupted; finished steps keep their results."""
        calls = loop.conversation.open_calls
        if not calls:
            return
        known = {call.id for message in loop.conversation.messages for call in message.tool_calls}
        if any(call.id not in known for call in calls):
            # The plan was interrupted while it streamed: its message never arrived.
            message = Message(role="assistant", tool_calls=calls)
            loop.conversation.messages.append(message)
            self._emit_reply(loop, message)
        if self._delegation:
            self._delegation.begin_turn(loop.conversation.messages[:-1])
        loop.conversation.open_calls = ()
        await self._calls.run_turn(calls, loop.conversation, loop.ctx)

    async def _check_stalled(
        self, loop: _LoopState, facts: Sequence[CallFact], stalls: StallDetector
    ) -> StepResult | None:
        """Return the result of a step that has stalled, or None to continue."""
        if status := stalls.streak.record(facts):
            return StepResult(status=status, text=_failure_text(facts), exit_code=exit_codes.TOOL_FAILED)
        repeated = stalls.repetition.record(facts)
        has_failed_again = repeated == 1 and not any(fact.success for fact in facts)
        if repeated == WARN_AT or has_failed_again:
            await self._add_user_message(loop, _REPEATED)
        if repeated < STOP_AT:
            return None
        reason = f"The step repeats itself: {facts[-1].tool} gave the same result {repeated + 1} times."
        # A new plan may resolve the first stall; replanning after every one would never end.
        surprise, self._has_stalled = "" if self._has_stalled else reason, True
        return StepResult(status="error", reason=reason, exit_code=exit_codes.FAILED, surprise=surprise)

    def _start_loop(
        self, request: ExecutorRequest, profile: ExecutorProfile, ctx: ExecCtx, conversation: Conversation
    ) -> _LoopState:
        model = request.model or self._settings.model
        # A continued conversation contains its instruction, and keeps all its tools, so that the prefix is unchanged.
        opening = () if request.history else (step_message(request),)
        return _LoopState(
            goal=request.goal,
            model=model,
            ctx=ctx,
            opening=(self._settings.system, *opening),
            conversation=conversation,
            size=ContextSize.of_window(self._settings.context_tokens(model), self._settings.max_output_tokens),
            tools=self._calls.schemas(ctx, without="" if request.history else PLAN_TOOL),
            max_retries=profile.max_retries,
        )

    async def _turn(self, loop: _LoopState) -> ModelReply:
        loop.conversation.turns += 1
        reply = await self._ask_model(loop)
        if (reply.message.reasoning or reply.message.reasoning_signature) and not reply.message.tool_calls:
            # Sent as it is logged: only the reasoning before a call is needed later.
            reply = replace(reply, message=replace(reply.message, reasoning="", reasoning_signature=None))
        loop.conversation.messages.append(reply.message)
        self._emit_reply(loop, reply.message, reply.usage)
        return reply

    def _emit_reply(self, loop: _LoopState, message: Message, spent: Usage | None = None) -> None:
        calls = tuple(CallMade(id=call.id, name=call.name, input=call.arguments) for call in message.tool_calls)
        event = MessageAdded(
            role="assistant",
            content=message.content,
            tool_calls=calls or None,
            # Some providers reject a history in which the reasoning before a call is missing.
            reasoning=message.reasoning or None,
            reasoning_signature=message.reasoning_signature,
            reasoning_model=message.reasoning_model,
            # The cost counts even if the step never ends.
            spent=spent,
        )
        # Not awaited: it reaches the disk with the next awaited event, the start of a call or the end of the step.
        self._channel.emit(event, step_id=loop.ctx.step_id, attempt=loop.ctx.attempt)

    async def _ask_model(self, loop: _LoopState) -> ModelReply:
        """Send the conversation; if the provider reports that it is too long, shorten it and retry."""
        for attempt in range(_OVERFLOW_TRIES + 1):
            opening = self._model_request(loop, loop.opening)
            await self._compactor.fit(loop.conversation, opening, loop.size, loop.ctx)
            request = self._model_request(loop, (*loop.opening, *loop.conversation.messages))
            try:
                return await self._stream_reply(request, loop.ctx)
            except ModelFault as fault:
                if fault.kind != "overflow" or attempt == _OVERFLOW_TRIES:
                    raise
                limit = min(loop.size.limit, tokens_of(size_of(request.messages))) // 2
                loop.size = replace(loop.size, limit=limit)
        raise AssertionError("unreachable")

    def _model_request(self, loop: _LoopState, messages: tuple[Message, ...]) -> ModelRequest:
        return ModelRequest(
            model=loop.model,
            messages=messages,
            tools=loop.tools,
            purpose="lead" if loop.ctx.step_id == LEAD else "step",
            step_id=loop.ctx.step_id,
            max_output_tokens=self._settings.max_output_tokens,
            temperature=self._settings.temperature,
            max_retries=loop.max_retries,
            cache_key=self._settings.cache_key,
        )

    async def _stream_reply(self, request: ModelRequest, ctx: ExecCtx) -> ModelReply:
        """Return the reply, emitting its text as it arrives; the received part of an interrupted one is kept."""
        reply: ModelReply | None = None
        said = ""
        delegation = self._delegation if ctx.step_id == LEAD else None
        if delegation:
            delegation.begin_turn(request.messages[1:])
        try:
            async with aclosing(self._client.stream(request)) as items:
                async for item in items:
                    match item:
                        case TextDelta(text=text):
                            said += text
                            self._emit_text(MessageAdded(role="assistant", content=text, delta=True), ctx)
                        case ReasoningDelta(text=text):
                            self._emit_text(MessageAdded(role="thought", content=text, delta=True), ctx)
                        case CallDelta(name=name) if delegation and name == PLAN_TOOL:
                            delegation.feed(item)
                        case StreamRestarted():
                            said = ""
                            if delegation:
                                delegation.restart()
                        case ModelReply():
                            reply = item
        except asyncio.CancelledError:
            if said.strip():
                self._emit_text(MessageAdded(role="assistant", content=said, interrupted=True), ctx)
            raise
        assert reply is not None
        return reply

    def _emit_text(self, event: MessageAdded, ctx: ExecCtx) -> None:
        self._channel.emit(event, step_id=ctx.step_id, attempt=ctx.attempt)

    async def _deliver_steering(self, loop: _LoopState) -> None:
        for text in self._control.pop_messages(loop.ctx.step_id):
            await self._add_user_message(loop, f"{_STEERING_PREFIX}{text}")

    async def _add_user_message(self, loop: _LoopState, text: str) -> None:
        """Add a user message between turns and publish it."""
        loop.conversation.messages.append(Message(role="user", content=text))
        event = MessageAdded(role="user", content=text)
        await self._channel.publish(event, step_id=loop.ctx.step_id, attempt=loop.ctx.attempt)


def _failure_text(facts: Sequence[CallFact]) -> str:
    last = facts[-1]
    return f"Gave up: the last calls all failed. Last error of {last.tool}: {last.output_preview}"


def _turn_limit_text(conversation: Conversation) -> str:
    recent = "\n".join(f"- {fact.tool}: {fact.output_preview[:300]}" for fact in conversation.facts[-3:])
    return f"Stopped at the limit of {conversation.turns} turns before the step was finished. Last results:\n{recent}"
