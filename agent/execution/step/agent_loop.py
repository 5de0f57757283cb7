"""The loop of one step: ask the model, run the tools it calls, ask again, until it answers."""

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
from agent.model.port import ModelReply, ModelRequest, TextDelta
from agent.protocol.channel import Channel
from agent.protocol.events import CallMade, MessageSaid
from agent.vocabulary import exit_codes
from agent.vocabulary.message import Message
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import CallFact, ExecutorProfile, ExecutorRequest
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass

MAX_FAILED_TURNS = 3
_REFUSED = frozenset({"blocked", "denied", "deferred"})


class FailureStreak:
    """Counts turns in a row in which every call failed.

    A command that was not tried before and ends with an error is news, not failure: that is how one debugs.
    """

    def __init__(self) -> None:
        self._turns = 0
        self._unproductive = 0
        self._refused = 0
        self._tried: set[str] = set()

    def record(self, facts: Sequence[CallFact]) -> StepStatus | None:
        """Return how the step must end after this turn, or None to go on."""
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
        fresh = commands - self._tried
        self._tried |= commands
        return bool(fresh)


# The second repetition gets a remark, the third ends the step.
WARN_AT, STOP_AT = 2, 3
_MUTATING = frozenset({"write", "execute"})


class RepetitionDetector:
    """Counts how often a call came back with the same result.

    A new deed starts the count anew: tests that fail the same way after another edit are work, not a circle.
    """

    def __init__(self, effect_of: Callable[[str], str | None]) -> None:
        self._effect_of = effect_of
        self._seen: Counter[str] = Counter()

    def record(self, facts: Sequence[CallFact]) -> int:
        """Return how often everything in this turn has been repeated by now; 0 when there was anything new."""
        signs = [_fingerprint(fact) for fact in facts]
        for fact, sign in zip(facts, signs, strict=True):
            if sign not in self._seen and self._effect_of(fact.tool) in _MUTATING:
                self._seen.clear()
        self._seen.update(signs)
        return min((self._seen[sign] - 1 for sign in signs), default=0)


def _fingerprint(fact: CallFact) -> str:
    call = json.dumps([fact.tool, dict(fact.args)], sort_keys=True, default=str)
    return f"{call} {fact.status} {fact.exit_code} {fact.output_len} {fact.output_preview}"


_SURPRISE_LINE = re.compile(r"^[\s>*_`#-]*SURPRISE:[*_`]*\s*(?P<why>.*?)[\s*_`]*$")


def split_surprise(answer: str) -> tuple[str, str]:
    """Return an answer without the surprise it ends with, and the surprise."""
    before, _, last = answer.rstrip().rpartition("\n")
    found = _SURPRISE_LINE.match(last)
    if found is None:
        return answer, ""
    why = found["why"] or "the plan no longer fits"
    return before.rstrip() or why, why


_STEERING_PREFIX = "The user adds, while you work: "
_NUDGE = "Go on: reply with the result, or call a tool."
_REPEATED = "You already made this call with the same result. Try something else, or reply with what you have."
_OVERFLOW_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """What every step's loop of a run shares."""

    model: str
    system: Message
    context_tokens: Callable[[str], int]
    max_output_tokens: int
    temperature: float | None = None


@dataclass(slots=True, kw_only=True)
class _LoopState:
    """One step in the loop: its opening, which never changes, and its conversation, which grows."""

    model: str
    ctx: ExecCtx
    opening: tuple[Message, ...]
    conversation: Conversation
    limit_tokens: int
    tools: tuple[dict[str, object], ...]


class _StallDetector:
    """What watches over one run of the loop."""

    def __init__(self, calls: ToolCallRunner) -> None:
        self.streak = FailureStreak()
        self.repetition = RepetitionDetector(calls.effect_of)


class AgentRunner:
    """Works one step with a model and tools; everything it hears and does is an event first."""

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
        self, request: ExecutorRequest, profile: ExecutorProfile, ctx: ExecCtx, talk: Conversation
    ) -> StepResult:
        """Loop until the model answers, gets nowhere, or reaches the turn limit; go on where `talk` stopped."""
        work = self._start_loop(request, ctx, talk)
        if answer := talk.last_answer:
            return _answer_result(answer, talk)
        guard, nudged, cut = _StallDetector(self._calls), False, talk.truncated_answer
        while talk.turns < profile.max_turns:
            await self._deliver_steering(work)
            try:
                reply = await self._turn(work)
            except ModelFault as fault:
                # A small model may fall silent once the work is done: asked for the result, it gives it.
                if fault.kind != "empty" or nudged or not talk.facts:
                    raise
                nudged = True
                await self._add_user_message(work, _NUDGE)
                continue
            said = reply.message.content
            if reply.message.tool_calls:
                facts = await self._calls.run_turn(reply.message.tool_calls, talk, ctx)
                if ending := await self._check_stalled(work, facts, guard):
                    return ending
            elif said.strip() and reply.finish_reason == "length":
                if cut:
                    return StepResult(status="partial", text=cut + said)
                cut = said
                await self._add_user_message(work, CONTINUE_PROMPT)
            elif answer := (cut + said).strip():
                if self._control.has_messages(ctx.step_id):
                    # Too soon to end: the person has just said something.
                    continue
                return _answer_result(answer, talk)
            elif nudged:
                return StepResult(status="error", reason="The model gave no answer.", exit_code=exit_codes.FAILED)
            else:
                nudged = True
                await self._add_user_message(work, _NUDGE)
        return StepResult(status="partial", text=_turn_limit_text(talk), exit_code=exit_codes.LIMIT)

    async def _check_stalled(
        self, work: _LoopState, facts: Sequence[CallFact], guard: "_StallDetector"
    ) -> StepResult | None:
        """Return how a step ends that gets nowhere, or None to go on."""
        if status := guard.streak.record(facts):
            return StepResult(status=status, text=_failure_text(facts), exit_code=exit_codes.TOOL_FAILED)
        repeated = guard.repetition.record(facts)
        if repeated == WARN_AT:
            await self._add_user_message(work, _REPEATED)
        if repeated < STOP_AT:
            return None
        reason = f"The step repeats itself: {facts[-1].tool} gave the same result {repeated + 1} times."
        # A new plan may lead out of a circle, once; after that nobody hopes any more.
        surprise, self._has_stalled = "" if self._has_stalled else reason, True
        return StepResult(status="error", reason=reason, exit_code=exit_codes.FAILED, surprise=surprise)

    def _start_loop(self, request: ExecutorRequest, ctx: ExecCtx, talk: Conversation) -> _LoopState:
        model = request.model or self._settings.model
        return _LoopState(
            model=model,
            ctx=ctx,
            opening=(self._settings.system, step_message(request)),
            conversation=talk,
            limit_tokens=self._context_limit(model),
            tools=self._calls.schemas(ctx),
        )

    def _context_limit(self, model: str) -> int:
        """Return the tokens a conversation may fill; a reply may not take more than half of a small window."""
        window = self._settings.context_tokens(model)
        return max(window - self._settings.max_output_tokens, window // 2)

    async def _turn(self, work: _LoopState) -> ModelReply:
        work.conversation.turns += 1
        reply = await self._ask_model(work)
        work.conversation.messages.append(reply.message)
        calls = tuple(CallMade(id=call.id, name=call.name, input=call.arguments) for call in reply.message.tool_calls)
        said = MessageSaid(
            role="assistant",
            content=reply.message.content,
            tool_calls=calls or None,
            # Some providers refuse a history in which the thoughts before a call are missing.
            reasoning=(reply.message.reasoning or None) if calls else None,
            reasoning_signature=reply.message.reasoning_signature if calls else None,
            # What was paid for counts, also when the step comes to no end.
            spent=reply.usage,
        )
        # Not waited for: it reaches the disk together with what follows from it, a call's start or the step's end.
        self._channel.emit(said, step_id=work.ctx.step_id, attempt=work.ctx.attempt)
        return reply

    async def _ask_model(self, work: _LoopState) -> ModelReply:
        """Ask; when the provider finds the conversation too long, shorten it and ask again."""
        for attempt in range(_OVERFLOW_TRIES + 1):
            opening = self._model_request(work, work.opening)
            await self._trimmer.trim(work.conversation, opening, work.limit_tokens)
            request = replace(opening, messages=(*work.opening, *work.conversation.messages))
            try:
                return await self._stream_reply(request, work.ctx)
            except ModelFault as fault:
                if fault.kind != "overflow" or attempt == _OVERFLOW_TRIES:
                    raise
                work.limit_tokens = min(work.limit_tokens, size_of(request.messages) // CHARS_PER_TOKEN) // 2
        raise AssertionError("unreachable")

    def _model_request(self, work: _LoopState, messages: tuple[Message, ...]) -> ModelRequest:
        return ModelRequest(
            model=work.model,
            messages=messages,
            tools=work.tools,
            purpose="step",
            step_id=work.ctx.step_id,
            max_output_tokens=self._settings.max_output_tokens,
            temperature=self._settings.temperature,
        )

    async def _stream_reply(self, request: ModelRequest, ctx: ExecCtx) -> ModelReply:
        """Return the reply; its text is emitted while it arrives."""
        reply: ModelReply | None = None
        async with aclosing(self._client.stream(request)) as items:
            async for item in items:
                if isinstance(item, TextDelta):
                    said = MessageSaid(role="assistant", content=item.text, delta=True)
                    self._channel.emit(said, step_id=ctx.step_id, attempt=ctx.attempt)
                elif isinstance(item, ModelReply):
                    reply = item
        assert reply is not None
        return reply

    async def _deliver_steering(self, work: _LoopState) -> None:
        for words in self._control.pop_messages(work.ctx.step_id):
            await self._add_user_message(work, f"{_STEERING_PREFIX}{words}")

    async def _add_user_message(self, work: _LoopState, text: str) -> None:
        """Say something to the model between its turns; kept like everything that was said."""
        work.conversation.messages.append(Message(role="user", content=text))
        said = MessageSaid(role="user", content=text)
        await self._channel.publish(said, step_id=work.ctx.step_id, attempt=work.ctx.attempt)


def _answer_result(answer: str, talk: Conversation) -> StepResult:
    text, surprise = split_surprise(answer)
    # A call that somebody stopped is no failure of the work that went on after it.
    is_whole = all(fact.success or fact.status == "cancelled" for fact in talk.facts)
    return StepResult(status="ok" if is_whole else "partial", text=text, surprise=surprise)


def _failure_text(facts: Sequence[CallFact]) -> str:
    last = facts[-1]
    return f"Gave up: the last calls all failed. Last error of {last.tool}: {last.output_preview}"


def _turn_limit_text(talk: Conversation) -> str:
    recent = "\n".join(f"- {fact.tool}: {fact.output_preview[:300]}" for fact in talk.facts[-3:])
    return f"Stopped at the limit of {talk.turns} turns before the step was finished. Last results:\n{recent}"
