"""Replans the remaining work when a result invalidates the plan, up to a limit."""

import asyncio

from agent.config.settings import ReplanPolicy
from agent.execution.graph.run_state import RunState
from agent.execution.step.step_result import collect_refusals
from agent.model.budget import BudgetExhausted
from agent.model.faults import ModelFault
from agent.planning.planner import Planner
from agent.protocol.channel import Channel
from agent.protocol.events import WarningRaised
from agent.vocabulary import exit_codes
from agent.vocabulary.plan import ANSWER, ASSUMPTION, SURPRISE, Plan, PlanStep
from agent.vocabulary.status import is_success
from agent.vocabulary.step import ExecutorResponse

MAX_QUESTIONS = 2
_REASON_CHARS = 300
# A new plan cannot fix these.
_NOT_REPLANNABLE = frozenset({exit_codes.NO_KEY, exit_codes.BAD_CONFIG, exit_codes.BUDGET, exit_codes.RETRY_LATER})
_UNANSWERED = (
    "nobody can be asked {question!r}: continue with an assumption, and say in the step that it is to be marked"
)


def replan_failed(why: str) -> str:
    return f"replanning failed: {why}"


def replan_limit_reached(limit: int) -> str:
    return f"not replanning: max_replans ({limit}) is reached"


def replan_reason(step: PlanStep, response: ExecutorResponse, *, policy: ReplanPolicy, has_waiting: bool) -> str | None:
    """Return why the remaining work should be replanned after a step's response; None if the plan stays."""
    if policy == "never" or response.exit_code in _NOT_REPLANNABLE:
        return None
    refused = collect_refusals([response])
    if refused.denied or refused.deferred:
        # The user or a rule decided that; a plan must not circumvent it.
        return None
    if response.status in ("error", "timeout"):
        return _one_line(f"{step.id} failed: {response.summary}")
    if not is_success(response.status) or not has_waiting:
        return None
    if response.surprise:
        return _one_line(f"{step.id}: {response.surprise}")
    if response.status == "partial":
        return _one_line(f"{step.id} worked only in part: {response.summary}")
    return f"{step.id} is done" if policy == "always" else None


class Replanner:
    """Replans the remaining work, one replan at a time; if that fails, the old plan continues."""

    def __init__(
        self,
        *,
        planner: Planner,
        state: RunState,
        channel: Channel,
        policy: ReplanPolicy,
        max_replans: int,
        request: str,
        context: str,
        replans: int = 0,
        answers: int = 0,
    ) -> None:
        """Take the counts of `replans` and `answers` from the resumed run, if any."""
        self._planner = planner
        self._state = state
        self._channel = channel
        self._policy: ReplanPolicy = policy if max_replans else "never"
        self._max_replans = max_replans
        self._surprises: list[tuple[PlanStep, ExecutorResponse, str]] = []
        self._lock = asyncio.Lock()
        self._has_assumed = False
        self._request, self._context = request, context
        self._replans, self._questions, self._known_answers = replans, answers, answers

    def may_ask(self) -> bool:
        """Count one more question to the user and return whether it is within the limit."""
        self._questions += 1
        return self._questions <= MAX_QUESTIONS

    async def after_step(self, step: PlanStep, response: ExecutorResponse) -> None:
        """Replan if the step's response calls for it; return when its dependents may start."""
        if step.type == "ask_user":
            await self._after_question(step, response)
            return
        # Searching for waiting steps takes time in a large plan, and most steps end as planned.
        if not replan_reason(step, response, policy=self._policy, has_waiting=True):
            return
        has_waiting = bool(self._state.waiting) or not self._state.plan_log.completed.is_set()
        if why := replan_reason(step, response, policy=self._policy, has_waiting=has_waiting):
            self._surprises.append((step, response, why))
            await self._after_surprise(step)

    async def _replan_rest(self, reason: str) -> Plan | None:
        """Return a plan of the remaining work; warn and return None if that fails."""
        request, progress = self._state.full_request(self._request), self._state.progress()
        try:
            plan = await self._planner.replan(request, self._context, progress, reason)
        except (ModelFault, BudgetExhausted) as problem:
            await self._warn(replan_failed(str(problem)))
            return None
        if plan is None:
            await self._warn(replan_failed("the reply contains no plan"))
        return plan

    async def _after_surprise(self, step: PlanStep) -> None:
        await self._state.plan_log.completed.wait()
        async with self._lock:
            # Surprises that arrived during another replan are handled together by the next one.
            if not any(one is step for one, _, _ in self._surprises):
                return
            has_waiting = bool(self._state.waiting)
            surprises = [one for one in self._surprises if has_waiting or not is_success(one[1].status)]
            self._surprises = []
            if not surprises:
                return
            if self._replans >= self._max_replans:
                await self._warn(replan_limit_reached(self._max_replans))
                return
            why = "; ".join(reason for _, _, reason in surprises)
            failed = {one.id: one for one, response, _ in surprises if not is_success(response.status)}
            plan = await self._replan_rest(why)
            if plan is None or (failed and not plan.steps):
                return
            if self._state.revise(plan.steps, f"{SURPRISE}{_one_line(why)}", failed):
                self._replans += 1
                # The new plan redoes the unfinished work of these steps.
                self._state.replaced |= {one.id for one, response, _ in surprises if response.status == "partial"}

    async def _after_question(self, step: PlanStep, response: ExecutorResponse) -> None:
        question = step.ask_question or step.instruction
        if is_success(response.status):
            self._state.record_answer(question, response.text)
            if self._known_answers:
                # The plan of the resumed run already considers this answer.
                self._known_answers -= 1
                return
        elif response.status != "needs_input" or self._has_assumed:
            return
        await self._state.plan_log.completed.wait()
        async with self._lock:
            if is_success(response.status):
                if plan := await self._replan_rest("the user has answered a question"):
                    reason = f"{ANSWER}{_one_line(f'{question} — {response.text}')}"
                    if not self._state.revise(plan.steps, reason):
                        # A resumed run must know that the plan considers this answer.
                        self._state.plan_log.confirm(reason)
            elif not self._has_assumed:
                self._has_assumed = True
                plan = await self._replan_rest(_UNANSWERED.format(question=question))
                if plan and plan.steps:
                    reason = f"{ASSUMPTION}{_one_line(f'no user to answer {question!r}')}"
                    self._state.revise(plan.steps, reason, {step.id: step})

    async def _warn(self, message: str) -> None:
        await self._channel.publish(WarningRaised(message=message))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _REASON_CHARS else line[: _REASON_CHARS - 1] + "…"
