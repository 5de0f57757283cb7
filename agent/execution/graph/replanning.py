"""Plans the rest of the work again when it no longer fits what happened; bounded, and only for a reason."""

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
# No other plan helps against these.
_NOT_REPLANNABLE = frozenset({exit_codes.NO_KEY, exit_codes.BAD_CONFIG, exit_codes.BUDGET, exit_codes.RETRY_LATER})
_UNANSWERED = "nobody can be asked {question!r}: go on with an assumption, and say in the step that it is to be marked"


def replan_reason(step: PlanStep, response: ExecutorResponse, *, policy: ReplanPolicy, has_waiting: bool) -> str | None:
    """Return why the rest of the plan should be made again after a step ended so; None when it stands."""
    if policy == "never" or response.exit_code in _NOT_REPLANNABLE:
        return None
    refused = collect_refusals([response])
    if refused.denied or refused.deferred:
        # A person decided that; a plan must not find a way round it.
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
    """Plans the rest again, one time after the other; whatever goes wrong with that, the old plan goes on."""

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
        """Start with the `replans` and `answers` of the run that is resumed, if one is."""
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
        """Say whether one more question may be put to the person, and count it."""
        self._questions += 1
        return self._questions <= MAX_QUESTIONS

    async def after_step(self, step: PlanStep, response: ExecutorResponse) -> None:
        """Plan the rest again when the end of a step calls for it; return when what depends on the step may go on."""
        if step.type == "ask_user":
            await self._after_question(step, response)
            return
        has_waiting = bool(self._state.waiting) or not self._state.plan_log.completed.is_set()
        if why := replan_reason(step, response, policy=self._policy, has_waiting=has_waiting):
            self._surprises.append((step, response, why))
            await self._after_surprise(step)

    async def _replan_rest(self, reason: str) -> Plan | None:
        """Return a plan of what remains; None, with a warning, when there is none to be had."""
        request, progress = self._state.full_request(self._request), self._state.progress()
        try:
            plan = await self._planner.replan(request, self._context, progress, reason)
        except (ModelFault, BudgetExhausted) as problem:
            await self._warn(f"the rest could not be planned again: {problem}")
            return None
        if plan is None:
            await self._warn("the rest could not be planned again: the reply holds no plan")
        return plan

    async def _after_surprise(self, step: PlanStep) -> None:
        await self._state.plan_log.completed.wait()
        async with self._lock:
            # Surprises that came while another plan was being made are answered by the next one together.
            if not any(one is step for one, _, _ in self._surprises):
                return
            has_waiting = bool(self._state.waiting)
            surprises = [one for one in self._surprises if has_waiting or not is_success(one[1].status)]
            self._surprises = []
            if not surprises:
                return
            if self._replans >= self._max_replans:
                await self._warn(f"the rest is not planned again: max_replans ({self._max_replans}) is reached")
                return
            why = "; ".join(reason for _, _, reason in surprises)
            failed = {one.id: one for one, response, _ in surprises if not is_success(response.status)}
            plan = await self._replan_rest(why)
            if plan is None or (failed and not plan.steps):
                return
            self._replans += self._state.revise(plan.steps, f"{SURPRISE}{_one_line(why)}", failed)

    async def _after_question(self, step: PlanStep, response: ExecutorResponse) -> None:
        question = step.ask_question or step.instruction
        if is_success(response.status):
            self._state.record_answer(question, response.text)
            if self._known_answers:
                # The plan of the run that is gone on with knows this answer.
                self._known_answers -= 1
                return
        elif response.status != "needs_input" or self._has_assumed:
            return
        await self._state.plan_log.completed.wait()
        async with self._lock:
            if is_success(response.status):
                if plan := await self._replan_rest("the person has answered a question"):
                    reason = f"{ANSWER}{_one_line(f'{question} — {response.text}')}"
                    if not self._state.revise(plan.steps, reason):
                        # A run that goes on must know that this answer has been planned with.
                        self._state.plan_log.confirm(reason)
            elif not self._has_assumed:
                self._has_assumed = True
                plan = await self._replan_rest(_UNANSWERED.format(question=question))
                if plan and plan.steps:
                    reason = f"{ASSUMPTION}{_one_line(f'nobody could be asked {question!r}')}"
                    self._state.revise(plan.steps, reason, {step.id: step})

    async def _warn(self, message: str) -> None:
        await self._channel.publish(WarningRaised(message=message))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _REASON_CHARS else line[: _REASON_CHARS - 1] + "…"
