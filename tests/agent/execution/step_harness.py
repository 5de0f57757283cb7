"""Runs one step with a scripted model and fake tools, and collects its events."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent.execution.approvals import PendingQuestions
from agent.execution.graph.step_cache import StepCache
from agent.execution.step.agent_loop import AgentRunner, RunnerSettings
from agent.execution.step.context import Conversation
from agent.execution.step.step_result import StepCancelled, StepNotSaved
from agent.execution.step.tool_calls import ToolCallRunner
from agent.executor import Executor
from agent.model.budget import Budget
from agent.model.faults import ModelFault
from agent.model.metered_client import MeteredModel
from agent.model.port import ModelReply, ModelRequest, StreamItem, TextDelta
from agent.protocol.channel import Channel, EventLog
from agent.protocol.envelope import Envelope
from agent.protocol.events import Event
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorProfile, ExecutorRequest, ExecutorResponse
from agent.vocabulary.unfinished import UnfinishedStep
from agent.vocabulary.usage import Usage
from tooling.contract.action import Effect
from tooling.contract.context import ExecCtx
from tooling.contract.json_codec import JsonObject
from tooling.contract.result import ToolMeta, ToolResult, error_result
from tooling.contract.tool import ToolSpec

USAGE = Usage(input_tokens=10, output_tokens=2, requests=1)
ScriptedTurn = ModelReply | BaseException
ToolFunction = Callable[[JsonObject], Awaitable[ToolResult]]


def text_reply(text: str, *, finish_reason: str = "stop") -> ModelReply:
    """A reply without a call."""
    return ModelReply(
        message=Message(role="assistant", content=text), usage=USAGE, model="m", finish_reason=finish_reason
    )


def call_reply(*names: str, **arguments: object) -> ModelReply:
    """A reply that calls tools, with ids in the style of a provider."""
    calls = tuple(ToolCall(id=uuid.uuid4().hex[:9], name=name, arguments=arguments) for name in names)
    return ModelReply(message=Message(role="assistant", tool_calls=calls), usage=USAGE, model="m")


class ScriptedClient:
    """A ModelClient that replays its replies in order and records its requests."""

    def __init__(self, *replies: ScriptedTurn) -> None:
        self.replies = list(replies)
        self.summaries: list[str | ModelFault] = []
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        self.requests.append(request)
        await asyncio.sleep(0)
        turn = self._summary() if request.purpose == "summary" else self.replies.pop(0)
        if isinstance(turn, BaseException):
            raise turn
        if turn.message.content:
            yield TextDelta(text=turn.message.content)
            await asyncio.sleep(0)
        yield turn

    async def close(self) -> None: ...

    def _summary(self) -> ScriptedTurn:
        said = self.summaries.pop(0) if self.summaries else ModelFault("script")
        return text_reply(said) if isinstance(said, str) else said


class FakeTools:
    """A ToolExecutor whose tools are functions."""

    def __init__(self, functions: Mapping[str, tuple[Effect, ToolFunction]]) -> None:
        self._functions = functions
        self.calls: list[tuple[str, JsonObject]] = []

    async def call_tool(self, name: str, args: JsonObject, ctx: ExecCtx) -> ToolResult:
        if name not in self._functions:
            return error_result(f"There is no tool {name}.", exit_code=127)
        if not ctx.may_use(name):
            return error_result(f"The tool {name} is not available in this step.", exit_code=126)
        # Judging and approving take time in the real executor too.
        await asyncio.sleep(0)
        if ctx.on_start:
            await ctx.on_start(only_reads=self._functions[name][0] == "read")
        self.calls.append((name, args))
        return await self._functions[name][1](args)

    def schemas(self) -> list[Mapping[str, object]]:
        return [spec.to_openai_tool() for name in self._functions if (spec := self.spec_of(name))]

    def has_tool(self, name: str) -> bool:
        return name in self._functions

    def spec_of(self, name: str) -> ToolSpec | None:
        if name not in self._functions:
            return None
        return ToolSpec(name=name, description=name, parameters={"type": "object"}, effect=self._functions[name][0])

    async def close(self) -> None: ...


async def succeed(args: JsonObject) -> ToolResult:
    await asyncio.sleep(0)
    return ToolResult(f"done {dict(args)}")


def return_in_turn(*results: ToolResult) -> ToolFunction:
    """A tool that returns these results in turn, then the last one forever."""
    remaining = list(results)

    async def function(args: JsonObject) -> ToolResult:
        await asyncio.sleep(0)
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    return function


def command_result(code: int, text: str = "") -> ToolResult:
    """The result of a command."""
    status = "ok" if code == 0 else "error"
    return ToolResult(text or f"exit {code}", code, meta=ToolMeta(status=status))  # type: ignore[arg-type]


TOOL_FUNCTIONS: Mapping[str, tuple[Effect, ToolFunction]] = {
    "look": ("read", succeed),
    "write": ("write", succeed),
    "run_command": ("execute", succeed),
}
STEP = PlanStep(id="s1", title="One", instruction="Do it")


class StepHarness:
    """An executor with scripted dependencies; `run` runs one step."""

    def __init__(
        self,
        *replies: ScriptedTurn,
        functions: Mapping[str, tuple[Effect, ToolFunction]] = TOOL_FUNCTIONS,
        budget: Budget | None = None,
        cache: StepCache | None = None,
        context_tokens: int = 100_000,
        log: EventLog | None = None,
    ) -> None:
        self.client = ScriptedClient(*replies)
        self.tools = FakeTools(functions)
        self.channel = Channel(session_id="s", run_id="r", log=log)
        self.subscription = self.channel.subscribe()
        self.budget = budget or Budget()
        self.questions = PendingQuestions(channel=self.channel, is_present=True, timeout_s=60)
        self.metered = MeteredModel(
            client=self.client, budget=self.budget, channel=self.channel, price=lambda model, usage: 0.0
        )
        self.calls = ToolCallRunner(tools=self.tools, channel=self.channel, charge=self.metered.record_tool_cost)
        self.sleeps: list[float] = []
        self.recorded: list[ExecutorResponse] = []
        settings = RunnerSettings(
            model="m",
            system=Message(role="system", content="You work."),
            context_tokens=lambda model: context_tokens,
            max_output_tokens=1000,
        )
        self.runner = AgentRunner(client=self.metered, calls=self.calls, channel=self.channel, settings=settings)
        self.executor = Executor(
            runner=self.runner,
            calls=self.calls,
            asker=self.questions,
            channel=self.channel,
            usage_of=self.budget.step_usage,
            waited_s=self.questions.waited_s,
            cache=cache,
            sleep=self._sleep,
        )
        no_id = uuid.UUID(int=0)
        self.ctx = ExecCtx(user_id=no_id, task_id=no_id, working_dir=Path("/"), step_id="s1")

    async def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)

    async def run(
        self,
        step: PlanStep = STEP,
        profile: ExecutorProfile | None = None,
        request: ExecutorRequest | None = None,
        *,
        key: str | None = None,
        unfinished: UnfinishedStep | None = None,
    ) -> ExecutorResponse:
        """Run a step to its response."""
        profile = profile or ExecutorProfile()
        step_request = request or ExecutorRequest(task_id=step.id, goal=step.instruction, model=step.model)
        ctx = replace(self.ctx, allowed_tools=profile.allowed_tools)
        try:
            response = await self.executor.run(step, step_request, profile, ctx, key=key, unfinished=unfinished)
        except (StepCancelled, StepNotSaved) as stop:
            self.recorded.append(stop.response)
            raise
        self.recorded.append(response)
        return response

    async def run_loop(self, conversation: Conversation, **more: int) -> object:
        """Run only the agent loop, on the given conversation."""
        request = ExecutorRequest(task_id="s1", goal="Do it")
        return await self.runner.run(request, ExecutorProfile(**more), self.ctx, conversation)  # type: ignore[arg-type]

    async def envelopes(self) -> list[Envelope]:
        """Close the channel and return every event in order."""
        await self.channel.close()
        return [envelope async for envelope in self.subscription]

    async def events(self, *kinds: type) -> Sequence[Event]:
        """Return the events of these kinds."""
        return [envelope.event for envelope in await self.envelopes() if isinstance(envelope.event, kinds)]
