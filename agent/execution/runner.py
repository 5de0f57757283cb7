"""The loop of one step: ask the model, run the tools it calls, ask again, until it answers."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from agent.execution.model_desk import ModelDesk
from agent.execution.prompt import step_message
from agent.execution.streak import Streak
from agent.execution.window import fit
from agent.model.faults import ModelFault
from agent.model.port import Delta, ModelReply, ModelRequest, TextDelta
from agent.protocol.channel import Channel
from agent.protocol.events import (
    CallMade,
    FilesChanged,
    MessageSaid,
    TodoChanged,
    ToolCompleted,
    ToolStarted,
)
from agent.vocabulary import exit_codes
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import CallFact, ExecutorProfile, ExecutorRequest
from agent.vocabulary.usage import Usage
from tooling.contract.context import ExecCtx
from tooling.contract.result import BAD_ARGUMENTS, ToolResult, failed
from tooling.contract.tool import ToolExecutor

PREVIEW_CHARS = 2000
_NUDGE = Message(role="user", content="Go on: reply with the result, or call a tool.")
_OVERFLOW_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """What every step's loop of a run shares."""

    model: str
    system: Message
    context_tokens: Callable[[], int]
    max_output_tokens: int
    temperature: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRunResult:
    """How the loop ended."""

    output: str
    status: StepStatus
    tool_calls: tuple[CallFact, ...]
    usage: Usage
    turns: int
    exit_code: int = 0


@dataclass(slots=True, kw_only=True)
class _Work:
    """What one step's loop has gathered so far."""

    request: ExecutorRequest
    ctx: ExecCtx
    messages: list[Message]
    limit_tokens: int
    tools: tuple[dict[str, object], ...]
    facts: list[CallFact] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    turns: int = 0
    calls: int = 0

    def next_call(self) -> ExecCtx:
        """Return the context of the next call; providers reuse their own ids, ours are unique."""
        self.calls += 1
        return replace(self.ctx, call_id=f"{self.ctx.step_id}.{self.ctx.attempt}.{self.calls}")

    def ended(self, status: StepStatus, output: str, exit_code: int = 0) -> AgentRunResult:
        return AgentRunResult(
            output=output,
            status=status,
            tool_calls=tuple(self.facts),
            usage=self.usage,
            turns=self.turns,
            exit_code=exit_code,
        )


class AgentRunner:
    """Works one step with a model and tools; everything it hears and does is an event first."""

    def __init__(self, *, desk: ModelDesk, tools: ToolExecutor, channel: Channel, settings: RunnerSettings) -> None:
        self._desk = desk
        self._tools = tools
        self._channel = channel
        self._settings = settings

    async def run(self, request: ExecutorRequest, profile: ExecutorProfile, ctx: ExecCtx) -> AgentRunResult:
        """Loop until the model answers, gets nowhere, or reaches the turn limit."""
        work = self._begin(request, ctx)
        streak, nudged = Streak(), False
        while work.turns < profile.max_turns:
            reply = await self._turn(work)
            if reply.message.tool_calls:
                facts = await self._call_all(reply.message.tool_calls, work)
                if ending := streak.after(facts):
                    return work.ended(ending, _gave_up(facts), exit_codes.TOOL_FAILED)
            elif answer := reply.message.content.strip():
                return work.ended("ok" if all(fact.success for fact in work.facts) else "partial", answer)
            elif nudged:
                return work.ended("error", "The model gave no answer.", exit_codes.FAILED)
            else:
                nudged = True
                work.messages.append(_NUDGE)
        return work.ended("partial", _out_of_turns(work), exit_codes.LIMIT)

    def _begin(self, request: ExecutorRequest, ctx: ExecCtx) -> _Work:
        shown = tuple(dict(schema) for schema in self._tools.schemas() if ctx.may_use(_tool_name(schema)))
        return _Work(
            request=request,
            ctx=ctx,
            messages=[self._settings.system, step_message(request)],
            limit_tokens=self._room(),
            tools=shown,
        )

    def _room(self) -> int:
        """Return the tokens a conversation may fill; a reply may not take more than half of a small window."""
        window = self._settings.context_tokens()
        return max(window - self._settings.max_output_tokens, window // 2)

    async def _turn(self, work: _Work) -> ModelReply:
        work.turns += 1
        reply = await self._ask(work)
        work.usage += reply.usage
        work.messages.append(reply.message)
        calls = tuple(CallMade(id=call.id, name=call.name, input=call.arguments) for call in reply.message.tool_calls)
        said = MessageSaid(role="assistant", content=reply.message.content, tool_calls=calls or None)
        # Not waited for: it reaches the disk together with what follows from it, a call's start or the step's end.
        self._channel.whisper(said, step_id=work.ctx.step_id, attempt=work.ctx.attempt)
        return reply

    async def _ask(self, work: _Work) -> ModelReply:
        """Ask; when the provider finds the conversation too long, shorten it and ask again."""
        for attempt in range(_OVERFLOW_TRIES + 1):
            work.messages = fit(work.messages, work.limit_tokens)
            try:
                return await self._desk.ask(self._model_request(work), lambda delta: self._hear(delta, work.ctx))
            except ModelFault as fault:
                if fault.kind != "overflow" or attempt == _OVERFLOW_TRIES:
                    raise
                size = sum(len(message.content) for message in work.messages)
                work.limit_tokens = min(work.limit_tokens, size // 3) // 2
        raise AssertionError("unreachable")

    def _model_request(self, work: _Work) -> ModelRequest:
        return ModelRequest(
            model=self._settings.model,
            messages=tuple(work.messages),
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

    async def _call_all(self, calls: Sequence[ToolCall], work: _Work) -> list[CallFact]:
        """Run the calls of one turn: side by side when all only read, else in order."""
        specs = [self._tools.spec_of(call.name) for call in calls]
        if len(calls) > 1 and all(spec is not None and spec.parallelizable for spec in specs):
            results = list(await asyncio.gather(*(self._call(call, work.next_call()) for call in calls)))
        else:
            results = [await self._call(call, work.next_call()) for call in calls]
        work.messages += [
            Message(role="tool", content=result.content, tool_call_id=call.id)
            for call, result in zip(calls, results, strict=True)
        ]
        facts = [_fact(call, result) for call, result in zip(calls, results, strict=True)]
        work.facts += facts
        return facts

    async def _call(self, call: ToolCall, ctx: ExecCtx) -> ToolResult:
        started = ToolStarted(tool_id=call.id, name=call.name, input=call.arguments)
        await self._channel.publish(started, step_id=ctx.step_id, attempt=ctx.attempt)
        if call.problem:
            result = failed(call.problem, exit_code=BAD_ARGUMENTS)
        else:
            result = await self._tools.call_tool(call.name, call.arguments, ctx)
        if result.meta.changes:
            changed = FilesChanged(changes=result.meta.changes)
            self._channel.whisper(changed, step_id=ctx.step_id, attempt=ctx.attempt)
        if result.meta.tasks is not None:
            todo = TodoChanged(items=result.meta.tasks)
            self._channel.whisper(todo, step_id=ctx.step_id, attempt=ctx.attempt)
        completed = ToolCompleted(
            tool_id=call.id,
            name=call.name,
            status=result.meta.status,
            exit_code=result.exit_code,
            output=result.content,
            display=result.display,
        )
        await self._channel.publish(completed, step_id=ctx.step_id, attempt=ctx.attempt)
        return result


def _fact(call: ToolCall, result: ToolResult) -> CallFact:
    return CallFact(
        tool=call.name,
        args=call.arguments,
        status=result.meta.status,
        exit_code=result.exit_code,
        output_len=len(result.content),
        output_preview=result.content[:PREVIEW_CHARS],
        rule=result.meta.rule,
        changed=tuple(change.path for change in result.meta.changes),
    )


def _tool_name(schema: object) -> str:
    function = schema.get("function") if isinstance(schema, dict) else None
    return str(function.get("name")) if isinstance(function, dict) else ""


def _gave_up(facts: Sequence[CallFact]) -> str:
    last = facts[-1]
    return f"Gave up: the last calls all failed. Last error of {last.tool}: {last.output_preview}"


def _out_of_turns(work: _Work) -> str:
    recent = "\n".join(f"- {fact.tool}: {fact.output_preview[:300]}" for fact in work.facts[-3:])
    return f"Stopped at the limit of {work.turns} turns before the step was finished. Last results:\n{recent}"
