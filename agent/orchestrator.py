"""One request from plan to answer: plans, runs the graph while the plan still streams, composes, concludes."""

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from agent.dispatcher import Dispatcher
from agent.execution.composer import Composer, joined, listed, results_text
from agent.execution.conclude import conclude, refusals
from agent.execution.ledger import BudgetExhausted, Ledger
from agent.execution.scheduler import Scheduler
from agent.execution.step_key import KeySource, key_of
from agent.execution.step_shelf import NoShelf, StepShelf
from agent.executor import Executor
from agent.model.faults import ModelFault
from agent.model.port import Delta, TextDelta
from agent.planning.graph import outline
from agent.planning.planner import Planner
from agent.protocol.channel import Channel
from agent.protocol.events import MessageSaid, PlanMade, WarningRaised
from agent.vocabulary import exit_codes
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.plan import COMPLETE, RESUMED, STREAMING, Plan, PlanStep
from agent.vocabulary.status import is_success
from agent.vocabulary.step import ExecutorProfile, ExecutorRequest, ExecutorResponse
from agent.vocabulary.unfinished import UnfinishedRun
from tooling.contract.context import ExecCtx
from tooling.contract.shape import encode

DEPENDENCY_CHARS = 6000
# Somebody looks at a plan before its first step starts, and may change it.
Review: TypeAlias = Callable[[Plan], Awaitable[Plan]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is asked: the request, what came with it, the form the answer must have; and the plan, if there is one.

    `lineage` is the first run of the chain this one belongs to; without one no result is kept or found.
    """

    request: str
    lineage: str = ""
    context: str = ""
    constraints: str = ""
    plan_only: bool = False
    plan: Plan | None = None


class OrchestratorRunner:
    """Runs one task; its steps, answers and ending are events before they are anything else."""

    def __init__(
        self,
        *,
        planner: Planner,
        executor: Executor,
        composer: Composer,
        dispatcher: Dispatcher,
        channel: Channel,
        ledger: Ledger,
        ctx_of: Callable[[str], ExecCtx],
        concurrency: int,
        max_steps: int,
        model: str = "",
        shelf: StepShelf | None = None,
        review: Review | None = None,
    ) -> None:
        self._planner = planner
        self._executor = executor
        self._composer = composer
        self._dispatcher = dispatcher
        self._channel = channel
        self._ledger = ledger
        self._ctx_of = ctx_of
        self._max_steps = max_steps
        self._model = model
        self._shelf = shelf or NoShelf()
        self._review = review
        self._scheduler = Scheduler(run_step=self._run_step, skip_step=self._skip_step, concurrency=concurrency)
        self._task = Task(request="")
        self._steps: list[PlanStep] = []
        self._responses: dict[str, ExecutorResponse] = {}
        self._keys: dict[str, str] = {}
        self._unfinished: UnfinishedRun | None = None
        self._plan: Plan | None = None
        self._over_limit = 0
        self._announced = 0
        self._plan_id = ""
        self._revision = 0
        self._announcing = asyncio.Lock()
        self._began = time.monotonic()

    @property
    def plan_id(self) -> str | None:
        """Return the id of the announced plan, if there is one."""
        return self._plan_id or None

    @property
    def results(self) -> list[tuple[PlanStep, ExecutorResponse]]:
        """Return the steps that have ended, in plan order."""
        return [(step, self._responses[step.id]) for step in self._steps if step.id in self._responses]

    async def run(self, task: Task, unfinished: UnfinishedRun | None = None) -> Outcome:
        """Plan, execute, compose; raises ModelFault or BudgetExhausted only when there is nothing to answer from.

        An unfinished run is gone on with: what it finished is found, what it had begun is taken up where it stood.
        """
        self._task, self._unfinished = task, unfinished
        running = asyncio.ensure_future(self._scheduler.drain())
        try:
            plan = await self._planned(task)
            self._plan = plan
            await self._announce(COMPLETE if self._revision else plan.reason)
            self._scheduler.seal()
            if not task.plan_only:
                await running
        finally:
            running.cancel()
            await asyncio.wait([running])
        if task.plan_only:
            return self._outcome(outline(plan.steps) if plan.answer is None else plan.answer)
        return await self._answer(plan)

    async def _planned(self, task: Task) -> Plan:
        """Return the plan, its steps under way; one that is given, or to be reviewed, starts when it is whole."""
        if self._unfinished and self._unfinished.is_plan_complete:
            task = replace(task, plan=Plan(steps=self._unfinished.plan, reason=RESUMED))
        if task.plan is None and self._review is None:
            return await self._planner.plan(task.request, task.context, self._on_step)
        plan = task.plan or await self._planner.plan(task.request, task.context, lambda step: None)
        if self._review and not task.plan:
            plan = await self._review(plan)
        plan = self._planner.priced(plan)
        for step in plan.steps:
            self._on_step(step)
        return plan

    def ended_early(self, exit_code: int, why: str) -> Outcome:
        """Return the outcome of a run that was stopped: what is finished, and what is missing."""
        notes: list[str] = []
        if any(is_success(response.status) for _, response in self.results):
            missing = [step.title for step in self._steps if step.id not in self._responses]
            notes = [joined(self.results), f"Stopped: {why}."]
            notes += ["Not finished: " + "; ".join(missing) + "."] if missing else []
        return _stopped(self._outcome("\n\n".join(notes)), exit_code, why)

    def _on_step(self, step: PlanStep) -> None:
        if len(self._steps) >= self._max_steps:
            self._over_limit += 1
            return
        self._steps.append(step)
        if not self._task.plan_only:
            self._scheduler.add(step)

    async def _run_step(self, step: PlanStep) -> ExecutorResponse:
        await self._announce(STREAMING)
        profile = self._dispatcher.profile_of(step)
        key = self._key_of(step, profile)
        if key and (found := self._shelf.find(key)):
            response = await self._executor.settle(step, found, key=key)
        else:
            response = await self._executor.run(
                step,
                self._request_of(step),
                profile,
                replace(self._ctx_of(step.id), allowed_tools=profile.allowed_tools),
                key=key,
                begun=self._unfinished.steps.get(step.id) if self._unfinished else None,
                note=self._note,
            )
        self._note(response)
        return response

    def _note(self, response: ExecutorResponse) -> None:
        self._responses[response.task_id] = response

    def _key_of(self, step: PlanStep, profile: ExecutorProfile) -> str | None:
        """Return the address of the step's result, which dependents need for theirs."""
        task = self._task
        if not task.lineage:
            return None
        source = KeySource(lineage=task.lineage, model=self._model, request=task.request, context=task.context)
        given = [self._keys[dep] for dep in step.depends_on if dep in self._keys]
        self._keys[step.id] = key_of(source, step, profile, given)
        return self._keys[step.id]

    async def _skip_step(self, step: PlanStep, reason: str) -> None:
        await self._announce(STREAMING)
        self._note(await self._executor.skip(step, reason))

    def _request_of(self, step: PlanStep) -> ExecutorRequest:
        found = [pair for pair in self.results if pair[0].id in step.depends_on]
        is_whole_task = step.instruction == self._task.request
        task = "" if is_whole_task else f"The whole request, for orientation only: {self._task.request}"
        parts = (self._task.context, task, results_text(found, DEPENDENCY_CHARS) if found else "")
        return ExecutorRequest(
            task_id=step.id,
            goal=step.instruction if is_whole_task else f"Your step: {step.instruction}",
            context="\n\n".join(part for part in parts if part),
            expected_outputs=step.expect or None,
            profile=step.profile,
            model=step.model,
        )

    async def _announce(self, reason: str) -> None:
        """Make the plan known before any step of it starts, and again when it has grown."""
        async with self._announcing:
            if len(self._steps) == self._announced:
                return
            self._announced = len(self._steps)
            self._revision += 1
            digest = hashlib.sha256(json.dumps(encode(tuple(self._steps)), sort_keys=True).encode()).hexdigest()
            self._plan_id = self._plan_id or f"plan-{digest[:8]}"
            made = PlanMade(
                plan_id=self._plan_id,
                revision=self._revision,
                hash=digest[:16],
                reason=reason,
                steps=tuple(self._steps),
            )
            await self._channel.publish(made)

    async def _answer(self, plan: Plan) -> Outcome:
        if plan.answer is not None:
            return self._outcome(plan.answer)
        results = self.results
        if self._task.plan and not self._task.plan.needs_model:
            return self._outcome(listed(results))
        done = [pair for pair in results if is_success(pair[1].status)]
        problem: ModelFault | BudgetExhausted | None = None
        if not done:
            # What failed is told as an error: nothing may be taken for an answer that is none.
            answer = ""
        elif len(results) == 1:
            answer = joined(results)
        else:
            answer, problem = await self._composer.compose(
                self._task.request, results, self._task.constraints, self._hear
            )
            if problem:
                warning = f"the answer was put together without the model: {problem}"
                await self._channel.publish(WarningRaised(message=warning))
        outcome = self._outcome(answer)
        if isinstance(problem, BudgetExhausted):
            return _stopped(outcome, exit_codes.BUDGET, str(problem))
        if self._over_limit:
            why = f"the plan has {self._over_limit} steps more than the limit of {self._max_steps}"
            return _stopped(outcome, exit_codes.LIMIT, why)
        return outcome

    def _hear(self, delta: Delta) -> None:
        if isinstance(delta, TextDelta):
            self._channel.whisper(MessageSaid(role="assistant", content=delta.text, delta=True))

    def _outcome(self, answer: str) -> Outcome:
        responses = tuple(response for _, response in self.results)
        subtype, exit_code = conclude(responses, answer)
        refused = refusals(responses)
        failed = [response for response in responses if exit_code and not is_success(response.status)]
        # A step that was skipped only tells of the one that made it so.
        failed.sort(key=lambda response: response.status == "skipped")
        return Outcome(
            subtype=subtype,
            exit_code=exit_code,
            answer=answer,
            plan=self._plan,
            responses=responses,
            artifacts=tuple(dict.fromkeys(path for r in responses for fact in r.tool_calls for path in fact.changed)),
            denials=refused.denied,
            deferred=refused.deferred,
            usage=self._ledger.total,
            model_usage=dict(self._ledger.by_model),
            num_turns=self._ledger.total.requests,
            duration_ms=int((time.monotonic() - self._began) * 1000),
            error=failed[0].summary if failed else None,
        )


def _stopped(outcome: Outcome, exit_code: int, why: str) -> Outcome:
    return replace(outcome, exit_code=exit_code, subtype=exit_codes.SUBTYPES[exit_code], error=why)
