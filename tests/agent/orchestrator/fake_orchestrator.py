"""An orchestrator with a scripted planner, agent loop, user and composer."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from agent.config.settings import ReplanPolicy, Settings
from agent.dispatcher import Dispatcher
from agent.execution.step.context import Conversation
from agent.execution.step.step_result import StepResult
from agent.executor import Executor
from agent.model.budget import Budget
from agent.model.faults import ModelFault
from agent.orchestrator import GraphSettings, OrchestratorRunner, Task
from agent.planning.capabilities import Capabilities
from agent.planning.planner import PlanStream
from agent.protocol.channel import Channel
from agent.protocol.codec import to_json
from agent.protocol.events import RunStarted
from agent.request_runner import run_completed
from agent.vocabulary import exit_codes
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.plan import Plan, PlanStep
from agent.vocabulary.step import ExecutorProfile, ExecutorRequest, ExecutorResponse
from agent.vocabulary.unfinished import UnfinishedRun
from tooling.contract.context import ExecCtx
from tooling.contract.image import Image
from tooling.contract.question import Question

EventJson = Mapping[str, object]
_NO_ID = UUID(int=0)


@dataclass(frozen=True, kw_only=True)
class StepScript:
    """How long a step runs, how it ends, and how long it waits for the user."""

    takes_s: float = 1.0
    ends: str = "ok"
    waits_s: float = 0.0


@dataclass(kw_only=True)
class RunScript:
    """The script of one run, and the observations made during it."""

    plan: Sequence[PlanStep]
    scripts: Mapping[str, StepScript] = field(default_factory=dict)
    later_plans: list[Sequence[PlanStep] | None] = field(default_factory=list)
    plan_gap_s: float = 0.0
    is_given: bool = False
    concurrency: int = 4
    replan: ReplanPolicy = "surprise"
    max_replans: int = 3
    cache: dict[str, ExecutorResponse] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    running: set[str] = field(default_factory=set)
    max_running: int = 0
    ended_at: float = 0.0

    async def run(
        self, *, cancel_at: float | None = None, unfinished: UnfinishedRun | None = None
    ) -> tuple[Outcome, list[EventJson]]:
        """Run the script; return the outcome and all events."""
        channel = Channel(session_id="s", run_id="run-1", log=None)
        events: list[EventJson] = []
        listener = asyncio.ensure_future(_listen(channel, events))
        await asyncio.sleep(0)
        started = RunStarted(model="", planner_model="", cwd="", workspace="", backend="", approval_mode="", tools=())
        await channel.publish(started)
        runner = self._runner(channel)
        given = Plan(steps=tuple(self.plan), reason="file") if self.is_given else None
        work = asyncio.ensure_future(runner.run(Task(request="do it", lineage="run-1", plan=given), unfinished))
        if cancel_at is not None:
            await asyncio.wait({work}, timeout=cancel_at)
            work.cancel()
        try:
            outcome = await work
        except asyncio.CancelledError:
            outcome = runner.early_outcome(exit_codes.INTERRUPTED, "interrupted")
        await channel.publish(run_completed(outcome, runner.plan_id))
        await channel.close()
        await listener
        return outcome, events

    def _runner(self, channel: Channel) -> OrchestratorRunner:
        worker = _Worker(self)
        executor = Executor(
            runner=worker,  # type: ignore[arg-type]
            calls=None,  # type: ignore[arg-type]
            asker=worker,
            channel=channel,
            cache=_MemoryCache(self.cache),
        )
        orchestrator = OrchestratorRunner(
            planner=_Planner(self),  # type: ignore[arg-type]
            executor=lambda: executor,
            composer=_Composer(),  # type: ignore[arg-type]
            dispatcher=Dispatcher(Settings(), ()),
            channel=channel,
            budget=Budget(),
            ctx_of=_ctx_of,
            settings=GraphSettings(
                concurrency=self.concurrency,
                max_steps=1000,
                root=Path("/nowhere"),
                replan=self.replan,
                max_replans=self.max_replans,
            ),
            cache=_MemoryCache(self.cache),
        )
        worker.orchestrator = orchestrator
        return orchestrator

    def on_start(self, step_id: str) -> None:
        self.started.append(step_id)
        self.running.add(step_id)
        self.max_running = max(self.max_running, len(self.running))

    def on_end(self, step_id: str) -> None:
        self.running.remove(step_id)
        self.ended_at = asyncio.get_running_loop().time()


class _Worker:
    """Runs steps and answers questions as scripted."""

    def __init__(self, script: RunScript) -> None:
        self._script = script
        self.orchestrator: OrchestratorRunner | None = None

    async def run(
        self, request: ExecutorRequest, profile: ExecutorProfile, ctx: ExecCtx, conversation: Conversation
    ) -> StepResult:
        step_script = self._script.scripts.get(ctx.step_id, StepScript())
        self._script.on_start(ctx.step_id)
        try:
            await asyncio.sleep(step_script.takes_s)
        finally:
            self._script.on_end(ctx.step_id)
        if step_script.waits_s:
            await self._wait(ctx.step_id, step_script.waits_s)
        if step_script.ends == "bug":
            raise ZeroDivisionError("a bug")
        if step_script.ends == "surprise":
            return StepResult(status="ok", text=ctx.step_id, surprise="all is different")
        if step_script.ends in ("ok", "partial"):
            return StepResult(status=step_script.ends, text=ctx.step_id)  # type: ignore[arg-type]
        return StepResult(status=step_script.ends, reason=f"{ctx.step_id} failed", exit_code=1)  # type: ignore[arg-type]

    async def ask(self, question: Question, ctx: ExecCtx) -> str | None:
        step_script = self._script.scripts.get(ctx.step_id, StepScript())
        await self._wait(ctx.step_id, step_script.waits_s)
        return "yes" if step_script.ends == "ok" else None

    async def _wait(self, step_id: str, seconds: float) -> None:
        assert self.orchestrator
        self.orchestrator.scheduler.pause(step_id)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.orchestrator.scheduler.resume(step_id)


class _Planner:
    """Returns scripted plans."""

    capabilities = Capabilities()

    def __init__(self, script: RunScript) -> None:
        self._script = script
        self._later_plans = list(script.later_plans)

    async def plan(self, request: str, context: str, images: tuple[Image, ...] = ()) -> PlanStream:
        for step in self._script.plan:
            yield step
            if self._script.plan_gap_s:
                await asyncio.sleep(self._script.plan_gap_s)
        yield Plan(steps=tuple(self._script.plan))

    async def replan(self, request: str, context: str, progress: str, reason: str) -> Plan | None:
        await asyncio.sleep(1.5)
        if not self._later_plans:
            raise ModelFault("refused", "no more plans")
        steps = self._later_plans.pop(0)
        return None if steps is None else Plan(steps=tuple(steps))

    def with_estimates(self, plan: Plan) -> Plan:
        return plan


class _Composer:
    """Returns a constant answer."""

    async def compose(self, *args: object, **kwargs: object) -> tuple[str, None]:
        return "All in all.", None


class _MemoryCache:
    """A step cache in memory."""

    def __init__(self, entries: dict[str, ExecutorResponse]) -> None:
        self._entries = entries

    def get(self, key: str) -> ExecutorResponse | None:
        return self._entries.get(key)

    async def put(self, key: str, response: ExecutorResponse) -> None:
        await asyncio.sleep(0.01)
        self._entries[key] = response


async def _listen(channel: Channel, events: list[EventJson]) -> None:
    async for envelope in channel.subscribe():
        events.append(to_json(envelope))


def _ctx_of(step_id: str) -> ExecCtx:
    return ExecCtx(user_id=_NO_ID, task_id=_NO_ID, working_dir=Path("/nowhere"), session_id="s", step_id=step_id)
