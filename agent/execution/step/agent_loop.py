"""The loop of one step: ask the model, run the tools it calls, ask again, until it answers."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.execution.step.context import CHARS_PER_TOKEN, GO_ON, Conversation, Fitter, size_of
from agent.execution.step.control import Wishes
from agent.execution.step.prompts import step_message
from agent.execution.step.step_result import Ending
from agent.execution.step.tool_calls import CallDesk
from agent.model.faults import ModelFault
from agent.model.metered_client import ModelDesk
from agent.model.port import Delta, ModelReply, ModelRequest, TextDelta
from agent.protocol.channel import Channel
from agent.protocol.events import CallMade, MessageSaid
from agent.vocabulary import exit_codes
from agent.vocabulary.message import Message
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import CallFact, ExecutorProfile, ExecutorRequest
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass

LIMIT = 3
_REFUSED = frozenset({"blocked", "denied", "deferred"})


class Streak:
    """Counts turns in a row in which every call failed.

    A command that was not tried before and ends with an error is news, not failure: that is how one debugs.
    """

    def __init__(self) -> None:
        self._turns = 0
        self._fruitless = 0
        self._refused = 0
        self._tried: set[str] = set()

    def after(self, facts: Sequence[CallFact]) -> StepStatus | None:
        """Return how the step must end after this turn, or None to go on."""
        if any(fact.success for fact in facts):
            self._turns = self._fruitless = self._refused = 0
            return None
        self._turns += 1
        self._refused = self._refused + 1 if all(fact.status in _REFUSED for fact in facts) else 0
        self._fruitless = 0 if self._taught_something(facts) else self._fruitless + 1
        if self._refused >= LIMIT:
            return "blocked"
        return "error" if self._turns >= LIMIT and self._fruitless >= LIMIT - 1 else None

    def _taught_something(self, facts: Sequence[CallFact]) -> bool:
        commands = {str(fact.args) for fact in facts if fact.tool == "run_command" and fact.status == "error"}
        fresh = commands - self._tried
        self._tried |= commands
        return bool(fresh)


# The second repetition gets a remark, the third ends the step.
REMARK, END = 2, 3
_CHANGES = frozenset({"write", "execute"})


class Repetition:
    """Counts how often a call came back with the same result.

    A new deed starts the count anew: tests that fail the same way after another edit are work, not a circle.
    """

    def __init__(self, effect_of: Callable[[str], str | None]) -> None:
        self._effect_of = effect_of
        self._seen: Counter[str] = Counter()

    def after(self, facts: Sequence[CallFact]) -> int:
        """Return how often everything in this turn has been repeated by now; 0 when there was anything new."""
        signs = [_sign(fact) for fact in facts]
        for fact, sign in zip(facts, signs, strict=True):
            if sign not in self._seen and self._effect_of(fact.tool) in _CHANGES:
                self._seen.clear()
        self._seen.update(signs)
        return min((self._seen[sign] - 1 for sign in signs), default=0)


def _sign(fact: CallFact) -> str:
    call = json.dumps([fact.tool, dict(fact.args)], sort_keys=True, default=str)
    return f"{call} {fact.status} {fact.exit_code} {fact.output_len} {fact.output_preview}"


_LINE = re.compile(r"^[\s>*_`#-]*SURPRISE:[*_`]*\s*(?P<why>.*?)[\s*_`]*$")


def without_surprise(answer: str) -> tuple[str, str]:
    """Return an answer without the surprise it ends with, and the surprise."""
    before, _, last = answer.rstrip().rpartition("\n")
    found = _LINE.match(last)
    if found is None:
        return answer, ""
    why = found["why"] or "the plan no longer fits"
    return before.rstrip() or why, why


_STEERED = "The user adds, while you work: "
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
class _Work:
    """One step in the loop: its opening, which never changes, and its conversation, which grows."""

    model: str
    ctx: ExecCtx
    opening: tuple[Message, ...]
    talk: Conversation
    limit_tokens: int
    tools: tuple[dict[str, object], ...]


class _Guard:
    """What watches over one run of the loop."""

    def __init__(self, calls: CallDesk) -> None:
        self.streak = Streak()
        self.repetition = Repetition(calls.effect_of)


class AgentRunner:
    """Works one step with a model and tools; everything it hears and does is an event first."""

    def __init__(
        self,
        *,
        desk: ModelDesk,
        calls: CallDesk,
        channel: Channel,
        settings: RunnerSettings,
        wishes: Wishes | None = None,
    ) -> None:
        self._wishes = wishes or Wishes()
        self._desk = desk
        self._calls = calls
        self._channel = channel
        self._settings = settings
        self._fitter = Fitter(desk=desk)
        self._has_circled = False

    async def run(self, request: ExecutorRequest, profile: ExecutorProfile, ctx: ExecCtx, talk: Conversation) -> Ending:
        """Loop until the model answers, gets nowhere, or reaches the turn limit; go on where `talk` stopped."""
        work = self._begin(request, ctx, talk)
        if answer := talk.last_answer:
            return _answered(answer, talk)
        guard, nudged, cut = _Guard(self._calls), False, talk.beginning_of_answer
        while talk.turns < profile.max_turns:
            await self._pass_on_wishes(work)
            try:
                reply = await self._turn(work)
            except ModelFault as fault:
                # A small model may fall silent once the work is done: asked for the result, it gives it.
                if fault.kind != "empty" or nudged or not talk.facts:
                    raise
                nudged = True
                await self._remark(work, _NUDGE)
                continue
            said = reply.message.content
            if reply.message.tool_calls:
                facts = await self._calls.answer_all(reply.message.tool_calls, talk, ctx)
                if ending := await self._gone_wrong(work, facts, guard):
                    return ending
            elif said.strip() and reply.finish_reason == "length":
                if cut:
                    return Ending(status="partial", text=cut + said)
                cut = said
                await self._remark(work, GO_ON)
            elif answer := (cut + said).strip():
                if self._wishes.has_words(ctx.step_id):
                    # Too soon to end: the person has just said something.
                    continue
                return _answered(answer, talk)
            elif nudged:
                return Ending(status="error", reason="The model gave no answer.", exit_code=exit_codes.FAILED)
            else:
                nudged = True
                await self._remark(work, _NUDGE)
        return Ending(status="partial", text=_out_of_turns(talk), exit_code=exit_codes.LIMIT)

    async def _gone_wrong(self, work: _Work, facts: Sequence[CallFact], guard: "_Guard") -> Ending | None:
        """Return how a step ends that gets nowhere, or None to go on."""
        if status := guard.streak.after(facts):
            return Ending(status=status, text=_gave_up(facts), exit_code=exit_codes.TOOL_FAILED)
        repeated = guard.repetition.after(facts)
        if repeated == REMARK:
            await self._remark(work, _REPEATED)
        if repeated < END:
            return None
        reason = f"The step repeats itself: {facts[-1].tool} gave the same result {repeated + 1} times."
        # A new plan may lead out of a circle, once; after that nobody hopes any more.
        surprise, self._has_circled = "" if self._has_circled else reason, True
        return Ending(status="error", reason=reason, exit_code=exit_codes.FAILED, surprise=surprise)

    def _begin(self, request: ExecutorRequest, ctx: ExecCtx, talk: Conversation) -> _Work:
        model = request.model or self._settings.model
        return _Work(
            model=model,
            ctx=ctx,
            opening=(self._settings.system, step_message(request)),
            talk=talk,
            limit_tokens=self._room(model),
            tools=self._calls.schemas(ctx),
        )

    def _room(self, model: str) -> int:
        """Return the tokens a conversation may fill; a reply may not take more than half of a small window."""
        window = self._settings.context_tokens(model)
        return max(window - self._settings.max_output_tokens, window // 2)

    async def _turn(self, work: _Work) -> ModelReply:
        work.talk.turns += 1
        reply = await self._ask(work)
        work.talk.messages.append(reply.message)
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
        self._channel.whisper(said, step_id=work.ctx.step_id, attempt=work.ctx.attempt)
        return reply

    async def _ask(self, work: _Work) -> ModelReply:
        """Ask; when the provider finds the conversation too long, shorten it and ask again."""
        for attempt in range(_OVERFLOW_TRIES + 1):
            opening = self._model_request(work, work.opening)
            await self._fitter.fit(work.talk, opening, work.limit_tokens)
            request = replace(opening, messages=(*work.opening, *work.talk.messages))
            try:
                return await self._desk.ask(request, lambda delta: self._hear(delta, work.ctx))
            except ModelFault as fault:
                if fault.kind != "overflow" or attempt == _OVERFLOW_TRIES:
                    raise
                work.limit_tokens = min(work.limit_tokens, size_of(request.messages) // CHARS_PER_TOKEN) // 2
        raise AssertionError("unreachable")

    def _model_request(self, work: _Work, messages: tuple[Message, ...]) -> ModelRequest:
        return ModelRequest(
            model=work.model,
            messages=messages,
            tools=work.tools,
            purpose="step",
            step_id=work.ctx.step_id,
            max_output_tokens=self._settings.max_output_tokens,
            temperature=self._settings.temperature,
        )

    def _hear(self, delta: Delta, ctx: ExecCtx) -> None:
        if isinstance(delta, TextDelta):
            said = MessageSaid(role="assistant", content=delta.text, delta=True)
            self._channel.whisper(said, step_id=ctx.step_id, attempt=ctx.attempt)

    async def _pass_on_wishes(self, work: _Work) -> None:
        for words in self._wishes.words(work.ctx.step_id):
            await self._remark(work, f"{_STEERED}{words}")

    async def _remark(self, work: _Work, text: str) -> None:
        """Say something to the model between its turns; kept like everything that was said."""
        work.talk.messages.append(Message(role="user", content=text))
        said = MessageSaid(role="user", content=text)
        await self._channel.publish(said, step_id=work.ctx.step_id, attempt=work.ctx.attempt)


def _answered(answer: str, talk: Conversation) -> Ending:
    text, surprise = without_surprise(answer)
    # A call that somebody stopped is no failure of the work that went on after it.
    is_whole = all(fact.success or fact.status == "cancelled" for fact in talk.facts)
    return Ending(status="ok" if is_whole else "partial", text=text, surprise=surprise)


def _gave_up(facts: Sequence[CallFact]) -> str:
    last = facts[-1]
    return f"Gave up: the last calls all failed. Last error of {last.tool}: {last.output_preview}"


def _out_of_turns(talk: Conversation) -> str:
    recent = "\n".join(f"- {fact.tool}: {fact.output_preview[:300]}" for fact in talk.facts[-3:])
    return f"Stopped at the limit of {talk.turns} turns before the step was finished. Last results:\n{recent}"
