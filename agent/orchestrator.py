"""One request from plan to answer: plans, runs the graph while the plan streams, composes, builds the outcome."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from agent.config.settings import PlanningMode, ReplanPolicy
from agent.dispatcher import Dispatcher
from agent.execution.graph.delegation import DelegationSettings, LeadDelegation
from agent.execution.graph.plan_permissions import PlanPermissions
from agent.execution.graph.plan_revision import progress_text
from agent.execution.graph.plan_tool import RESULT_CHARS
from agent.execution.graph.ready_queue import names_path
from agent.execution.graph.replanning import Replanner
from agent.execution.graph.run_state import OVER_LIMIT, PlanLog, RunState
from agent.execution.graph.scheduler import Scheduler
from agent.execution.graph.step_cache import StepCache
from agent.execution.result.compose import (
    Composer,
    dependency_excerpts,
    join_results,
    list_outputs,
    remove_unknown_citations,
)
from agent.execution.result.outcome_builder import OutcomeBuilder, partial_answer
from agent.execution.result.run_status import failure_reason
from agent.execution.step.control import StepControl
from agent.model.budget import Budget, BudgetExhausted
from agent.model.faults import INCOMPLETE, ModelFault
from agent.planning.graph import outline, topological_order
from agent.planning.planner import Planner
from agent.planning.steps import short_title
from agent.protocol.channel import Channel
from agent.protocol.commands import Submit
from agent.protocol.events import WarningRaised
from agent.step_runner import CachingStepRunner, StepFolders, StepSource
from agent.vocabulary import exit_codes
from agent.vocabulary.message import Message
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.plan import LEAD, RESUMED, Plan, PlanStep
from agent.vocabulary.status import is_success
from agent.vocabulary.step import ExecutorResponse
from agent.vocabulary.unfinished import UnfinishedRun
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.image import Image

if TYPE_CHECKING:
    from agent.executor import Executor

# Modules that steps need are imported while the planner's model responds, after its request was sent.
_PRELOAD_DELAY_S = 0.1
# Shows a plan before its first step starts; may return another one.
Review: TypeAlias = Callable[[Plan], Awaitable[Plan]]
_CUT_OFF = "the planner was cut off, so that only the beginning of its plan is known"
# Joined results in place of the model's answer are a success, unless the model refused to answer.
_NO_SUCCESS = INCOMPLETE | {"filtered"}
PLAN_REST_MISSING = "the plan could not be completed: the reply contains no plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A request, its context, the required form of its answer, and its plan if one is given.

    `lineage` is the first run of the chain this one belongs to; without one no result is cached or reused. `history`
    is the session's conversation up to this request, for the lead; a planner has none. `background` is context from the
    start of the conversation that delegated steps need.
    """

    request: str
    history: tuple[Message, ...] = ()
    background: str = ""
    lineage: str = ""
    context: str = ""
    images: tuple[Image, ...] = ()
    constraints: str = ""
    plan_only: bool = False
    plan: Plan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSettings:
    """Limits and policies of a run; `resume_command` resumes it, `mask` hides secrets.

    A given plan is executed unchanged unless `replans_given_plans`.
    """

    concurrency: int
    max_steps: int
    root: Path
    model: str = ""
    planning: PlanningMode = "always"
    replan: ReplanPolicy = "surprise"
    max_replans: int = 3
    replans_given_plans: bool = False
    require_verified: bool = False
    resume_command: str | None = None
    mask: Callable[[str], str] = lambda text: text


class OrchestratorRunner:
    """Runs one task; its plan, steps and answer are published as events."""

    def __init__(
        self,
        *,
        planner: Planner,
        executor: "Callable[[], Executor]",
        composer: Composer,
        dispatcher: Dispatcher,
        channel: Channel,
        budget: Budget,
        ctx_of: Callable[[str], ExecCtx],
        settings: GraphSettings,
        control: StepControl | None = None,
        cache: StepCache | None = None,
        review: Review | None = None,
        folders: StepFolders | None = None,
        permissions: PlanPermissions | None = None,
    ) -> None:
        self._permissions = permissions
        self._planner = planner
        self._executor = executor
        self._composer = composer
        self._dispatcher = dispatcher
        self._channel = channel
        self._ctx_of = ctx_of
        self._settings = settings
        self._cache = cache
        self._review = review
        self._folders = folders
        self.scheduler = Scheduler(concurrency=settings.concurrency, root=str(settings.root))
        self._plan_log = PlanLog(channel=channel, max_steps=settings.max_steps, spent=budget.step_usage)
        self._state = RunState(plan_log=self._plan_log, scheduler=self.scheduler)
        self.delegation = LeadDelegation(
            state=self._state,
            control=control or StepControl(),
            planner=planner,
            report=self._report_results,
            settings=DelegationSettings(policy=settings.replan, max_replans=settings.max_replans),
            permissions=permissions,
        )
        self._outcomes = OutcomeBuilder(
            state=self._state,
            budget=budget,
            root=settings.root,
            resume_command=settings.resume_command,
            require_verified=settings.require_verified,
        )

    @property
    def plan_id(self) -> str | None:
        """Return the id of the announced plan, if there is one."""
        return self._plan_log.plan_id

    def is_declared_write(self, path: str) -> bool:
        """Whether a step of the plan declares that it writes a path; declaring the whole folder does not count."""
        return any(names_path(pattern, path) for step in self._plan_log.all_steps for pattern in step.writes)

    def is_led(self, submit: Submit, unfinished: UnfinishedRun | None = None) -> bool:
        """Whether a lead works on a request, rather than a planner with steps and a composer."""
        if submit.plan or submit.plan_only or self._review:
            return False
        if unfinished and (unfinished.plan or unfinished.answer):
            return unfinished.is_led
        return self._settings.planning != "always"

    async def run(self, task: Task, unfinished: UnfinishedRun | None = None) -> Outcome:
        """Plan, execute, compose; raises ModelFault or BudgetExhausted only if there is nothing to answer from.

        When an `unfinished` run is resumed, its finished steps are reused and its started ones are resumed.
        """
        steps = self._step_runner(task, unfinished)
        running = asyncio.ensure_future(self.scheduler.run(steps))
        planning = asyncio.ensure_future(self._plan(task, unfinished, steps))
        preloading = asyncio.get_running_loop().call_later(_PRELOAD_DELAY_S, lambda: steps.executor)
        try:
            await asyncio.wait([planning, running], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                # Before the plan is complete the graph can only end with an error: further planning is pointless.
                running.result()
            plan = await planning
            if not task.plan_only:
                await running
        finally:
            planning.cancel()
            preloading.cancel()
            running.cancel()
            await asyncio.gather(planning, running, return_exceptions=True)
        if task.plan_only:
            return self._outcomes.build(outline(plan.steps) if plan.answer is None else plan.answer, plan)
        plan = replace(plan, steps=self._plan_log.all_steps)
        if plan.answer is not None:
            return self._outcomes.build(plan.answer, plan)
        if task.history:
            return self._build_led_outcome(plan)
        known = unfinished.answer if unfinished and not steps.has_executed else None
        return await self._build_outcome(task, plan, known)

    def early_outcome(self, exit_code: int, why: str) -> Outcome:
        """Return the outcome of a stopped run: its finished results and the missing steps."""
        state = self._state
        answer = partial_answer(
            state.results, state.unfinished, why, is_plan_complete=self._plan_log.completed.is_set()
        )
        plan = Plan(steps=self._plan_log.all_steps) if self._plan_log.all_steps else None
        return self._outcomes.build_stopped(answer, plan, exit_code, why)

    def _step_runner(self, task: Task, unfinished: UnfinishedRun | None) -> CachingStepRunner:
        settings = self._settings
        is_given = task.plan is not None or bool(unfinished and unfinished.is_plan_given)
        return CachingStepRunner(
            source=StepSource(
                request=task.request,
                context=task.context,
                images=task.images,
                background=task.background,
                history=task.history,
                prefix_of=self.delegation.prefix_of,
                lineage=task.lineage,
                model=settings.model,
                may_replan=settings.replans_given_plans or not is_given,
                unfinished=unfinished,
                mask=settings.mask,
            ),
            executor=self._executor,
            dispatcher=self._dispatcher,
            state=self._state,
            observer=self.delegation
            if task.history
            else Replanner(
                planner=self._planner,
                state=self._state,
                channel=self._channel,
                policy=settings.replan,
                max_replans=settings.max_replans,
                request=task.request,
                context=task.context,
                replans=unfinished.replans if unfinished else 0,
                answers=unfinished.clarifications if unfinished else 0,
            ),
            channel=self._channel,
            ctx_of=self._ctx_of,
            cache=self._cache,
            folders=self._folders,
            permissions=self._permissions,
        )

    async def _plan(self, task: Task, unfinished: UnfinishedRun | None, steps: CachingStepRunner) -> Plan:
        plan = self._lead_plan(task, unfinished) if task.history else await self._make_plan(task, unfinished, steps)
        self._plan_log.complete(plan.reason)
        if task.history:
            await self._state.lead_ended.wait()
            self.delegation.stop_all()
        self.scheduler.seal()
        return plan

    def _lead_plan(self, task: Task, unfinished: UnfinishedRun | None) -> Plan:
        """Return the plan of the lead, which works on the request, and the steps it had delegated before."""
        step = PlanStep(id=LEAD, title=short_title(task.request) or "Do the task", instruction=task.request)
        if self._permissions:
            self._permissions.check_led()
        self._add(step, task)
        if unfinished is None:
            return Plan(steps=(step,))
        steps = tuple(step for step in unfinished.plan if step.id != LEAD)
        self.delegation.restore(topological_order(steps), task.history, unfinished.reported)
        return Plan(steps=(step, *steps), reason=RESUMED)

    async def _report_results(self, results: Sequence[tuple[PlanStep, ExecutorResponse]]) -> str:
        """Return results for the lead, with the paths of those that are too long."""
        return await dependency_excerpts(
            results, self._ctx_of(LEAD).outputs_dir, self._settings.mask, limit=RESULT_CHARS // 2
        )

    async def _make_plan(self, task: Task, unfinished: UnfinishedRun | None, steps: CachingStepRunner) -> Plan:
        """Return the plan with its steps started; a given, resumed or reviewed plan starts when it is complete."""
        if unfinished and not unfinished.plan and unfinished.answer:
            return Plan(steps=(), answer=unfinished.answer)
        plan = Plan(steps=unfinished.plan, reason=RESUMED) if unfinished and unfinished.plan else task.plan
        if plan is None:
            async with aclosing(self._planner.plan(task.request, task.context, task.images)) as planned:
                async for item in planned:
                    if isinstance(item, Plan):
                        plan = item
                    elif self._review is None:
                        self._add(item, task)
            assert plan is not None
            if self._review is None:
                self._check_permissions(plan, task)
                return plan
            plan = await self._review(plan)
        self._check_permissions(plan, task)
        plan = self._planner.with_estimates(plan)
        for step in plan.steps:
            self._add(step, task)
        if unfinished and unfinished.plan and not unfinished.is_plan_complete:
            await self._plan_missing_steps(task, unfinished.plan, steps)
        return plan

    def _check_permissions(self, plan: Plan, task: Task) -> None:
        """Compare a complete plan with the manifest of the run."""
        if self._permissions and not task.plan_only and plan.answer is None:
            self._permissions.check(plan.steps)
            self._permissions.is_complete.set()

    async def _plan_missing_steps(self, task: Task, beginning: tuple[PlanStep, ...], steps: CachingStepRunner) -> None:
        """Complete a plan that was interrupted; its known steps run meanwhile."""
        ordered = topological_order(beginning)
        found = [(step, response) for step in ordered if (response := steps.cached_result(step))]
        known = {step.id for step, _ in found}
        progress = progress_text(found, (), [step for step in ordered if step.id not in known])
        plan = await self._planner.replan(task.request, task.context, progress, _CUT_OFF)
        if plan:
            self._state.revise(plan.steps, RESUMED)
        else:
            await self._warn(PLAN_REST_MISSING)

    def _add(self, step: PlanStep, task: Task) -> None:
        has_room = self._plan_log.add(step)
        if task.plan_only:
            return
        if has_room:
            self.scheduler.add(step)
        else:
            self.scheduler.add_skipped(step, OVER_LIMIT)

    async def _build_outcome(self, task: Task, plan: Plan, known_answer: str | None) -> Outcome:
        results, effective = self._state.results, self._state.effective_responses
        if task.plan and not (task.plan.needs_model or self._settings.replans_given_plans):
            return self._outcomes.build(list_outputs(results), plan)
        if exit_codes.BUDGET in {response.exit_code for response in effective}:
            return self.early_outcome(exit_codes.BUDGET, failure_reason(effective, exit_codes.BUDGET))
        if not any(is_success(response.status) for _, response in results):
            # Failures are reported as errors: they must not look like an answer.
            outcome = self._outcomes.build("", plan)
        elif len(results) == 1:
            outcome = self._outcomes.build(join_results(results), plan)
        elif known_answer:
            outcome = self._outcomes.build(known_answer, plan)
        else:
            outcome = await self._compose(task, plan)
        return self._within_limit(outcome, plan)

    def _within_limit(self, outcome: Outcome, plan: Plan) -> Outcome:
        """Return the outcome, stopped if the plan has more steps than allowed."""
        if excess := len(self._plan_log.over_limit):
            why = f"the plan has {excess} steps more than the limit of {self._settings.max_steps}"
            return self._outcomes.build_stopped(outcome.answer, plan, exit_codes.LIMIT, why)
        return outcome

    def _build_led_outcome(self, plan: Plan) -> Outcome:
        """Return the outcome of the lead's answer; without one, that of the delegated steps."""
        state = self._state
        lead = state.response_of(LEAD)
        if lead and lead.exit_code == exit_codes.BUDGET:
            return self.early_outcome(exit_codes.BUDGET, lead.summary)
        others = [pair for pair in state.results if pair[0].id != LEAD]
        if lead and (is_success(lead.status) or lead.text):
            if self.delegation.was_mended(lead):
                state.replaced |= {step.id for step, response in others if response.status != "ok"}
            answer = remove_unknown_citations(lead.text, [step.id for step, _ in others]) if others else lead.text
        else:
            answer = join_results(others) if any(is_success(response.status) for _, response in others) else ""
        return self._within_limit(self._outcomes.build(answer, plan), plan)

    async def _compose(self, task: Task, plan: Plan) -> Outcome:
        """Return the outcome with the composed answer, or with the joined results if the model fails."""
        state = self._state
        answer, problem = await self._composer.compose(
            state.full_request(task.request), state.results, task.constraints, replaced=state.replaced
        )
        if problem and not _is_cut_off(problem):
            await self._warn(f"the answer was assembled without the model: {problem}")
        if isinstance(problem, BudgetExhausted):
            return self._outcomes.build_stopped(answer, plan, exit_codes.BUDGET, str(problem))
        outcome = self._outcomes.build(answer, plan)
        if problem is None or outcome.is_error or problem.kind not in _NO_SUCCESS:
            return outcome
        stopped = self._outcomes.build_stopped(answer, plan, problem.policy.exit_code, str(problem))
        return replace(stopped, subtype="partial", hint=problem.policy.hint)

    async def _warn(self, message: str) -> None:
        await self._channel.publish(WarningRaised(message=message))


def _is_cut_off(problem: ModelFault | BudgetExhausted) -> bool:
    return isinstance(problem, ModelFault) and problem.kind in INCOMPLETE
