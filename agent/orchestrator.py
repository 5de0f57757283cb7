"""One request from plan to answer: plans, runs the graph while the plan still streams, composes, concludes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from agent.config.settings import ReplanPolicy
from agent.dispatcher import Dispatcher
from agent.execution.graph.plan_revision import progress_text
from agent.execution.graph.replanning import Replanner
from agent.execution.graph.run_state import OVER_LIMIT, PlanLog, RunState
from agent.execution.graph.scheduler import Scheduler
from agent.execution.graph.step_cache import KeySource, NoStepCache, StepCache, cache_key, provisional_key
from agent.execution.result.compose import Composer, dependency_excerpts, join_results, list_outputs
from agent.execution.result.outcome_builder import OutcomeBuilder, partial_answer
from agent.execution.step.step_result import (
    failure_reason,
    has_masked_secret,
    internal_error_response,
    is_final,
    masked_secret_response,
    question_limit_response,
)
from agent.model.budget import Budget, BudgetExhausted
from agent.model.port import Delta, TextDelta
from agent.planning.graph import outline, topological_order
from agent.planning.planner import Planner
from agent.protocol.channel import Channel
from agent.protocol.events import MessageSaid, WarningRaised
from agent.protocol.masking import mask_strings
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.plan import RESUMED, Plan, PlanStep
from agent.vocabulary.status import is_success
from agent.vocabulary.step import ExecutorRequest, ExecutorResponse
from agent.vocabulary.unfinished import UnfinishedRun
from agent.vocabulary.usage import Usage
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass

if TYPE_CHECKING:
    from agent.executor import Executor

# While a planner thinks, what its steps will need is loaded; not before its request is on its way.
_PRELOAD_DELAY_S = 0.1
# Somebody looks at a plan before its first step starts, and may change it.
Review: TypeAlias = Callable[[Plan], Awaitable[Plan]]
_CUT_OFF = "the planner was cut off, so that only the beginning of its plan is known"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSettings:
    """Limits and policies of a run; `resume` is the command that goes on with it, `mask` hides secrets.

    A given plan is run as it stands unless `replans_given_plans`.
    """

    concurrency: int
    max_steps: int
    root: Path
    model: str = ""
    replan: ReplanPolicy = "surprise"
    max_replans: int = 3
    replans_given_plans: bool = False
    require_verified: bool = False
    resume_command: str | None = None
    mask: Callable[[str], str] = lambda text: text


class OrchestratorRunner:
    """Runs one task; its steps, answers and ending are events before they are anything else."""

    def __init__(
        self,
        *,
        planner: Planner,
        executor: "Callable[[], Executor]",
        composer: Composer,
        dispatcher: Dispatcher,
        channel: Channel,
        ledger: Budget,
        ctx_of: Callable[[str], ExecCtx],
        settings: GraphSettings,
        shelf: StepCache | None = None,
        review: Review | None = None,
    ) -> None:
        self._planner = planner
        self._make_executor = executor
        self._composer = composer
        self._dispatcher = dispatcher
        self._channel = channel
        self._ctx_of = ctx_of
        self._settings = settings
        self._cache = shelf or NoStepCache()
        self._review = review
        self._scheduler = Scheduler(
            run_step=self._run_step,
            skip_step=self._skip_step,
            concurrency=settings.concurrency,
            root=str(settings.root),
        )
        self._plan_log = PlanLog(channel=channel, max_steps=settings.max_steps, spent=ledger.step_usage)
        self._state = RunState(plan_log=self._plan_log, scheduler=self._scheduler)
        self._replanner = Replanner(
            planner=planner,
            board=self._state,
            channel=channel,
            policy=settings.replan,
            max_replans=settings.max_replans,
        )
        self._outcomes = OutcomeBuilder(
            board=self._state,
            ledger=ledger,
            root=settings.root,
            resume=settings.resume_command,
            require_verified=settings.require_verified,
        )
        self._task = Task(request="")
        self._unfinished: UnfinishedRun | None = None
        self._keys: dict[str, str] = {}
        self._has_run_steps = False

    @cached_property
    def _executor(self) -> "Executor":
        return self._make_executor()

    @property
    def plan_id(self) -> str | None:
        """Return the id of the announced plan, if there is one."""
        return self._plan_log.plan_id

    async def run(self, task: Task, unfinished: UnfinishedRun | None = None) -> Outcome:
        """Plan, execute, compose; raises ModelFault or BudgetExhausted only when there is nothing to answer from.

        An unfinished run is gone on with: what it finished is found, what it had begun is taken up where it stood.
        """
        self._task, self._unfinished = task, unfinished
        self._replanner.start(
            task.request,
            task.context,
            replans=unfinished.replans if unfinished else 0,
            answers_heard=unfinished.clarifications if unfinished else 0,
        )
        running = asyncio.ensure_future(self._scheduler.drain())
        planning = asyncio.ensure_future(self._plan_and_seal())
        preparing = asyncio.get_running_loop().call_later(_PRELOAD_DELAY_S, lambda: self._executor)
        try:
            await asyncio.wait([planning, running], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                # Before the plan is whole the graph can only end by a problem: there is nothing left to plan for.
                running.result()
            plan = await planning
            if not task.plan_only:
                await running
        finally:
            planning.cancel()
            preparing.cancel()
            running.cancel()
            await asyncio.gather(planning, running, return_exceptions=True)
        if plan.answer is not None or task.plan_only:
            return self._outcomes.build(
                outline(plan.steps) if plan.answer is None else plan.answer, self._with_all_steps(plan)
            )
        return await self._build_outcome(plan)

    def early_outcome(self, exit_code: int, why: str) -> Outcome:
        """Return the outcome of a run that was stopped: what is finished, and what is missing."""
        board = self._state
        answer = partial_answer(board.results, board.unfinished, why, is_plan_whole=self._plan_log.completed.is_set())
        plan = Plan(steps=self._plan_log.all_steps) if self._plan_log.all_steps else None
        return self._outcomes.build_stopped(answer, plan, exit_code, why)

    def pause(self, step_id: str) -> None:
        """Let another step work while this one waits for a person."""
        self._scheduler.pause(step_id)

    def resume(self, step_id: str) -> None:
        """Count a step as working again: the person has answered."""
        self._scheduler.resume(step_id)

    async def _plan_and_seal(self) -> Plan:
        plan = await self._make_plan()
        self._plan_log.complete(plan.reason)
        self._scheduler.seal()
        return plan

    async def _make_plan(self) -> Plan:
        """Return the plan, its steps under way; one that is given, or to be reviewed, starts when it is whole."""
        task, before = self._task, self._unfinished
        plan = task.plan
        if before and before.plan:
            plan = Plan(steps=before.plan, reason=RESUMED)
        elif before and before.answer:
            return Plan(steps=(), answer=before.answer)
        elif plan is None and self._review is None:
            return await self._planner.plan(task.request, task.context, self._on_step)
        elif plan is None and self._review:
            plan = await self._review(await self._planner.plan(task.request, task.context, lambda step: None))
        assert plan is not None
        plan = self._planner.with_estimates(plan)
        for step in plan.steps:
            self._on_step(step)
        if before and before.plan and not before.is_plan_complete:
            await self._plan_missing_steps(before.plan)
        return plan

    async def _plan_missing_steps(self, beginning: tuple[PlanStep, ...]) -> None:
        """Plan on from the beginning of a plan, whose steps go on meanwhile."""
        ordered = topological_order(beginning)
        found = [(step, response) for step in ordered if (response := self._cached_result(step))]
        known = {step.id for step, _ in found}
        progress = progress_text(found, (), [step for step in ordered if step.id not in known])
        plan = await self._planner.replan(self._task.request, self._task.context, progress, _CUT_OFF)
        if plan:
            self._state.revise(plan.steps, RESUMED)
        else:
            await self._warn("the rest of the plan could not be made: the reply holds no plan")

    def _on_step(self, step: PlanStep) -> None:
        has_room = self._plan_log.add(step)
        if self._task.plan_only:
            return
        if has_room:
            self._scheduler.add(step)
        else:
            self._scheduler.add_skipped(step, OVER_LIMIT)

    async def _run_step(self, step: PlanStep) -> ExecutorResponse:
        try:
            await self._plan_log.wait_announced(step.id)
            response = await self._execute_step(step)
            if self._may_replan:
                # Another plan is being made: that is waiting, not work.
                self._scheduler.pause(step.id)
                await self._replanner.after_step(step, response)
            return response
        except AgentError:
            raise
        except Exception as error:  # noqa: BLE001 (the edge of a step: a bug around one must not end the others)
            await self._warn(f"internal error around step {step.id}: {error!r}")
            return self._state.response_of(step.id) or await self._publish_result(
                step, internal_error_response(step, error)
            )

    @property
    def _may_replan(self) -> bool:
        is_as_written = self._task.plan is not None or bool(self._unfinished and self._unfinished.is_plan_given)
        return self._settings.replans_given_plans or not is_as_written

    async def _execute_step(self, step: PlanStep) -> ExecutorResponse:
        """Return how a step ended: found again, not to be asked, or worked on."""
        if found := self._cached_result(step):
            # What it cost was paid by the run that did it.
            return await self._publish_result(step, replace(found, usage=Usage()), self._keys[step.id])
        if step.type == "ask_user" and self._may_replan and not self._replanner.may_ask():
            return await self._publish_result(step, question_limit_response(step))
        if self._unfinished and has_masked_secret(step):
            return await self._publish_result(step, masked_secret_response(step))
        self._has_run_steps = True
        profile = self._dispatcher.profile_of(step)
        response = await self._executor.run(
            step,
            await self._build_request(step),
            profile,
            replace(self._ctx_of(step.id), allowed_tools=profile.allowed_tools),
            key=self._keys.get(step.id),
            begun=self._unfinished.steps.get(step.id) if self._unfinished else None,
            note=self._state.record,
        )
        if step.id in self._keys and not is_final(response):
            self._keys[step.id] = provisional_key(self._keys[step.id], response)
        return response

    async def _publish_result(
        self, step: PlanStep, response: ExecutorResponse, key: str | None = None
    ) -> ExecutorResponse:
        return await self._executor.publish_result(step, response, key=key, note=self._state.record)

    def _cached_result(self, step: PlanStep) -> ExecutorResponse | None:
        """Return the step's result when a run of this chain has it already."""
        task = self._task
        if not task.lineage:
            return None
        # A resumed run knows requests and steps only as they are logged, so secrets are no part of an address.
        mask, model = self._settings.mask, self._settings.model
        source = KeySource(lineage=task.lineage, model=model, request=mask(task.request), context=task.context)
        given = [self._keys[dep] for dep in step.depends_on if dep in self._keys]
        self._keys[step.id] = cache_key(source, mask_strings(step, mask), self._dispatcher.profile_of(step), given)
        return self._cache.get(self._keys[step.id])

    async def _skip_step(self, step: PlanStep, reason: str) -> None:
        await self._plan_log.wait_announced(step.id)
        self._state.record(await self._executor.skip(step, reason))

    async def _build_request(self, step: PlanStep) -> ExecutorRequest:
        found = [pair for pair in self._state.results if pair[0].id in step.depends_on]
        is_whole_task = step.instruction == self._task.request
        asked = self._state.full_request(self._task.request)
        task = "" if is_whole_task else f"The whole request, for orientation only: {asked}"
        known = (
            await dependency_excerpts(found, self._ctx_of(step.id).outputs_dir, self._settings.mask) if found else ""
        )
        parts = (self._task.context, task, known)
        return ExecutorRequest(
            task_id=step.id,
            goal=step.instruction if is_whole_task else f"Your step: {step.instruction}",
            context="\n\n".join(part for part in parts if part),
            expected_outputs=step.expect or None,
            model=step.model,
        )

    async def _build_outcome(self, plan: Plan) -> Outcome:
        results, whole = self._state.results, self._with_all_steps(plan)
        if self._task.plan and not (self._task.plan.needs_model or self._settings.replans_given_plans):
            return self._outcomes.build(list_outputs(results), whole)
        if exit_codes.BUDGET in {response.exit_code for response in self._state.effective_responses}:
            return self.early_outcome(
                exit_codes.BUDGET, failure_reason(self._state.effective_responses, exit_codes.BUDGET) or ""
            )
        if not any(is_success(response.status) for _, response in results):
            # What failed is told as an error: nothing may be taken for an answer that is none.
            outcome = self._outcomes.build("", whole)
        elif len(results) == 1:
            outcome = self._outcomes.build(join_results(results), whole)
        else:
            outcome = await self._compose_outcome(plan)
        if beyond := len(self._plan_log.over_limit):
            why = f"the plan has {beyond} steps more than the limit of {self._settings.max_steps}"
            return self._outcomes.build_stopped(outcome.answer, whole, exit_codes.LIMIT, why)
        return outcome

    async def _compose_outcome(self, plan: Plan) -> Outcome:
        """Return the outcome with an answer made out of all results; without a model it is their own words."""
        if self._unfinished and self._unfinished.answer and not self._has_run_steps:
            return self._outcomes.build(self._unfinished.answer, self._with_all_steps(plan))
        answer, problem = await self._composer.compose(
            self._state.full_request(self._task.request),
            self._state.results,
            self._task.constraints,
            self._on_delta,
            replaced=self._state.replaced,
        )
        if problem:
            await self._warn(f"the answer was put together without the model: {problem}")
        if isinstance(problem, BudgetExhausted):
            return self._outcomes.build_stopped(answer, self._with_all_steps(plan), exit_codes.BUDGET, str(problem))
        return self._outcomes.build(answer, self._with_all_steps(plan))

    def _with_all_steps(self, plan: Plan) -> Plan:
        """Return the plan with every step that was ever in it and not dropped."""
        return plan if self._task.plan_only else replace(plan, steps=self._plan_log.all_steps)

    def _on_delta(self, delta: Delta) -> None:
        if isinstance(delta, TextDelta):
            self._channel.emit(MessageSaid(role="assistant", content=delta.text, delta=True))

    async def _warn(self, message: str) -> None:
        await self._channel.publish(WarningRaised(message=message))
