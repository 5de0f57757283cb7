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
from agent.execution.graph.replanning import Replanning
from agent.execution.graph.run_state import BEYOND, Board, PlanBook
from agent.execution.graph.scheduler import Scheduler
from agent.execution.graph.step_cache import KeySource, NoShelf, StepShelf, key_of, passing_key
from agent.execution.result.compose import Composer, excerpts, joined, listed
from agent.execution.result.outcome_builder import Closing, partial_answer
from agent.execution.step.step_result import broken, censored, is_censored, reason_of, stands, unasked
from agent.model.budget import BudgetExhausted, Ledger
from agent.model.port import Delta, TextDelta
from agent.planning.graph import in_order, outline
from agent.planning.planner import Planner
from agent.protocol.channel import Channel
from agent.protocol.events import MessageSaid, WarningRaised
from agent.protocol.masking import masked
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
_SOON_S = 0.1
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
    resume: str | None = None
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
        ledger: Ledger,
        ctx_of: Callable[[str], ExecCtx],
        settings: GraphSettings,
        shelf: StepShelf | None = None,
        review: Review | None = None,
    ) -> None:
        self._planner = planner
        self._make_executor = executor
        self._composer = composer
        self._dispatcher = dispatcher
        self._channel = channel
        self._ctx_of = ctx_of
        self._settings = settings
        self._shelf = shelf or NoShelf()
        self._review = review
        self._scheduler = Scheduler(
            run_step=self._run_step,
            skip_step=self._skip_step,
            concurrency=settings.concurrency,
            root=str(settings.root),
        )
        self._book = PlanBook(channel=channel, max_steps=settings.max_steps, spent=ledger.of_step)
        self._board = Board(book=self._book, scheduler=self._scheduler)
        self._replanning = Replanning(
            planner=planner,
            board=self._board,
            channel=channel,
            policy=settings.replan,
            max_replans=settings.max_replans,
        )
        self._closing = Closing(
            board=self._board,
            ledger=ledger,
            root=settings.root,
            resume=settings.resume,
            require_verified=settings.require_verified,
        )
        self._task = Task(request="")
        self._unfinished: UnfinishedRun | None = None
        self._keys: dict[str, str] = {}
        self._has_worked = False

    @cached_property
    def _executor(self) -> "Executor":
        return self._make_executor()

    @property
    def plan_id(self) -> str | None:
        """Return the id of the announced plan, if there is one."""
        return self._book.plan_id

    async def run(self, task: Task, unfinished: UnfinishedRun | None = None) -> Outcome:
        """Plan, execute, compose; raises ModelFault or BudgetExhausted only when there is nothing to answer from.

        An unfinished run is gone on with: what it finished is found, what it had begun is taken up where it stood.
        """
        self._task, self._unfinished = task, unfinished
        self._replanning.begin(
            task.request,
            task.context,
            replans=unfinished.replans if unfinished else 0,
            answers_heard=unfinished.clarifications if unfinished else 0,
        )
        running = asyncio.ensure_future(self._scheduler.drain())
        planning = asyncio.ensure_future(self._wholly_planned())
        preparing = asyncio.get_running_loop().call_later(_SOON_S, lambda: self._executor)
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
            return self._closing.outcome(outline(plan.steps) if plan.answer is None else plan.answer, self._whole(plan))
        return await self._answer(plan)

    def ended_early(self, exit_code: int, why: str) -> Outcome:
        """Return the outcome of a run that was stopped: what is finished, and what is missing."""
        board = self._board
        answer = partial_answer(board.results, board.unfinished, why, is_plan_whole=self._book.whole.is_set())
        plan = Plan(steps=self._book.known) if self._book.known else None
        return self._closing.stopped(answer, plan, exit_code, why)

    def pause(self, step_id: str) -> None:
        """Let another step work while this one waits for a person."""
        self._scheduler.pause(step_id)

    def go_on(self, step_id: str) -> None:
        """Count a step as working again: the person has answered."""
        self._scheduler.go_on(step_id)

    async def _wholly_planned(self) -> Plan:
        plan = await self._planned()
        self._book.complete(plan.reason)
        self._scheduler.seal()
        return plan

    async def _planned(self) -> Plan:
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
        plan = self._planner.priced(plan)
        for step in plan.steps:
            self._on_step(step)
        if before and before.plan and not before.is_plan_complete:
            await self._plan_what_is_missing(before.plan)
        return plan

    async def _plan_what_is_missing(self, beginning: tuple[PlanStep, ...]) -> None:
        """Plan on from the beginning of a plan, whose steps go on meanwhile."""
        ordered = in_order(beginning)
        found = [(step, response) for step in ordered if (response := self._found(step))]
        known = {step.id for step, _ in found}
        progress = progress_text(found, (), [step for step in ordered if step.id not in known])
        plan = await self._planner.replan(self._task.request, self._task.context, progress, _CUT_OFF)
        if plan:
            self._board.revise(plan.steps, RESUMED)
        else:
            await self._warn("the rest of the plan could not be made: the reply holds no plan")

    def _on_step(self, step: PlanStep) -> None:
        has_room = self._book.add(step)
        if self._task.plan_only:
            return
        if has_room:
            self._scheduler.add(step)
        else:
            self._scheduler.give_up(step, BEYOND)

    async def _run_step(self, step: PlanStep) -> ExecutorResponse:
        try:
            await self._book.announced(step.id)
            response = await self._worked(step)
            if self._may_replan:
                # Another plan is being made: that is waiting, not work.
                self._scheduler.pause(step.id)
                await self._replanning.after(step, response)
            return response
        except AgentError:
            raise
        except Exception as error:  # noqa: BLE001 (the edge of a step: a bug around one must not end the others)
            await self._warn(f"internal error around step {step.id}: {error!r}")
            return self._board.response_of(step.id) or await self._settled(step, broken(step, error))

    @property
    def _may_replan(self) -> bool:
        is_as_written = self._task.plan is not None or bool(self._unfinished and self._unfinished.is_as_written)
        return self._settings.replans_given_plans or not is_as_written

    async def _worked(self, step: PlanStep) -> ExecutorResponse:
        """Return how a step ended: found again, not to be asked, or worked on."""
        if found := self._found(step):
            # What it cost was paid by the run that did it.
            return await self._settled(step, replace(found, usage=Usage()), self._keys[step.id])
        if step.type == "ask_user" and self._may_replan and not self._replanning.may_ask():
            return await self._settled(step, unasked(step))
        if self._unfinished and is_censored(step):
            return await self._settled(step, censored(step))
        self._has_worked = True
        profile = self._dispatcher.profile_of(step)
        response = await self._executor.run(
            step,
            await self._request_of(step),
            profile,
            replace(self._ctx_of(step.id), allowed_tools=profile.allowed_tools),
            key=self._keys.get(step.id),
            begun=self._unfinished.steps.get(step.id) if self._unfinished else None,
            note=self._board.note,
        )
        if step.id in self._keys and not stands(response):
            self._keys[step.id] = passing_key(self._keys[step.id], response)
        return response

    async def _settled(self, step: PlanStep, response: ExecutorResponse, key: str | None = None) -> ExecutorResponse:
        return await self._executor.settle(step, response, key=key, note=self._board.note)

    def _found(self, step: PlanStep) -> ExecutorResponse | None:
        """Return the step's result when a run of this chain has it already."""
        task = self._task
        if not task.lineage:
            return None
        # A resumed run knows requests and steps only as they are logged, so secrets are no part of an address.
        mask, model = self._settings.mask, self._settings.model
        source = KeySource(lineage=task.lineage, model=model, request=mask(task.request), context=task.context)
        given = [self._keys[dep] for dep in step.depends_on if dep in self._keys]
        self._keys[step.id] = key_of(source, masked(step, mask), self._dispatcher.profile_of(step), given)
        return self._shelf.find(self._keys[step.id])

    async def _skip_step(self, step: PlanStep, reason: str) -> None:
        await self._book.announced(step.id)
        self._board.note(await self._executor.skip(step, reason))

    async def _request_of(self, step: PlanStep) -> ExecutorRequest:
        found = [pair for pair in self._board.results if pair[0].id in step.depends_on]
        is_whole_task = step.instruction == self._task.request
        asked = self._board.asked(self._task.request)
        task = "" if is_whole_task else f"The whole request, for orientation only: {asked}"
        known = await excerpts(found, self._ctx_of(step.id).outputs_dir, self._settings.mask) if found else ""
        parts = (self._task.context, task, known)
        return ExecutorRequest(
            task_id=step.id,
            goal=step.instruction if is_whole_task else f"Your step: {step.instruction}",
            context="\n\n".join(part for part in parts if part),
            expected_outputs=step.expect or None,
            model=step.model,
        )

    async def _answer(self, plan: Plan) -> Outcome:
        results, whole = self._board.results, self._whole(plan)
        if self._task.plan and not (self._task.plan.needs_model or self._settings.replans_given_plans):
            return self._closing.outcome(listed(results), whole)
        if exit_codes.BUDGET in {response.exit_code for response in self._board.counted}:
            return self.ended_early(exit_codes.BUDGET, reason_of(self._board.counted, exit_codes.BUDGET) or "")
        if not any(is_success(response.status) for _, response in results):
            # What failed is told as an error: nothing may be taken for an answer that is none.
            outcome = self._closing.outcome("", whole)
        elif len(results) == 1:
            outcome = self._closing.outcome(joined(results), whole)
        else:
            outcome = await self._composed(plan)
        if beyond := len(self._book.beyond):
            why = f"the plan has {beyond} steps more than the limit of {self._settings.max_steps}"
            return self._closing.stopped(outcome.answer, whole, exit_codes.LIMIT, why)
        return outcome

    async def _composed(self, plan: Plan) -> Outcome:
        """Return the outcome with an answer made out of all results; without a model it is their own words."""
        if self._unfinished and self._unfinished.answer and not self._has_worked:
            return self._closing.outcome(self._unfinished.answer, self._whole(plan))
        answer, problem = await self._composer.compose(
            self._board.asked(self._task.request),
            self._board.results,
            self._task.constraints,
            self._hear,
            replaced=self._board.replaced,
        )
        if problem:
            await self._warn(f"the answer was put together without the model: {problem}")
        if isinstance(problem, BudgetExhausted):
            return self._closing.stopped(answer, self._whole(plan), exit_codes.BUDGET, str(problem))
        return self._closing.outcome(answer, self._whole(plan))

    def _whole(self, plan: Plan) -> Plan:
        """Return the plan with every step that was ever in it and not dropped."""
        return plan if self._task.plan_only else replace(plan, steps=self._book.known)

    def _hear(self, delta: Delta) -> None:
        if isinstance(delta, TextDelta):
            self._channel.whisper(MessageSaid(role="assistant", content=delta.text, delta=True))

    async def _warn(self, message: str) -> None:
        await self._channel.publish(WarningRaised(message=message))
