"""Delegation: steps that the lead starts while it writes a plan, revises on request, and gets results from."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from agent.config.settings import ReplanPolicy
from agent.execution.graph.plan_draft import PlanDraft
from agent.execution.graph.plan_permissions import PlanPermissions
from agent.execution.graph.replanning import replan_reason
from agent.execution.graph.run_state import OVER_LIMIT, RunState
from agent.execution.step.control import StepControl
from agent.model.port import CallDelta
from agent.planning.planner import Planner
from agent.vocabulary.message import Message
from agent.vocabulary.plan import COMPLETE, LEAD, PLAN_TOOL, PlanStep
from agent.vocabulary.status import is_success
from agent.vocabulary.step import ExecutorResponse
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject
from tooling.contract.result import ToolError

Report: TypeAlias = Callable[[Sequence[tuple[PlanStep, ExecutorResponse]]], Awaitable[str]]

CANCELLED = "Cancelled by the lead."
NOTHING_RUNS = "There is no step: give the steps to hand out."
_REVISED = "revised by the lead"
# The lead's own tools that can do the work of a failed step.
_WORKING_TOOLS = frozenset({"run_command", "run_python", "write_file", "edit_file", "apply_patch", "delete_file"})
_STATE = "Still running: {running}. Not started: {waiting}."
_WHAT_NOW = (
    "Something ended unexpectedly ({why}). Call plan with all the work that remains, without steps to wait for the "
    "rest, or go on yourself."
)
_CITE = "After each fact put the id of the result it comes from in square brackets, such as [{example}]."


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationSettings:
    """Conditions for returning unexpected results to the lead at once, and how often."""

    policy: ReplanPolicy = "surprise"
    max_replans: int = 3
    cites: bool = True


@dataclass(slots=True, kw_only=True)
class _Surprise:
    """An unexpected end of a step; its dependents wait until the lead has decided."""

    why: str
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    is_told: bool = False


class LeadDelegation:
    """The part of the graph below the lead."""

    def __init__(
        self,
        *,
        state: RunState,
        control: StepControl,
        planner: Planner,
        report: Report,
        settings: DelegationSettings | None = None,
        permissions: PlanPermissions | None = None,
    ) -> None:
        self._permissions = permissions
        self._state = state
        self._control = control
        self._planner = planner
        self._report = report
        self._settings = settings or DelegationSettings()
        self._prefix: tuple[Message, ...] = ()
        self._prefixes: dict[str, tuple[Message, ...]] = {}
        self._draft = PlanDraft(planner)
        self._has_plan = False
        self._reported: set[str] = set()
        self._surprises: list[_Surprise] = []
        self._early_returns = 0

    def restore(
        self, steps: Sequence[PlanStep], conversation: Sequence[Message], reported: Mapping[str, ExecutorResponse]
    ) -> None:
        """Add the steps of an interrupted run; the lead knows the results of the `reported` ones."""
        self._prefix = tuple(conversation)
        ids = {step.id for step in steps}
        for step in steps:
            if step.context == "fork":
                self._prefixes[step.id] = _before_plan_of(step.id, conversation)
            self._add(replace(step, depends_on=tuple(dep for dep in step.depends_on if dep in ids)))
        self._reported |= reported.keys()
        self._state.replaced |= {name for name, response in reported.items() if response.status == "cancelled"}
        self._has_plan = bool(steps)
        if self._permissions and steps:
            self._permissions.is_complete.set()

    def begin_turn(self, messages: Sequence[Message]) -> None:
        """Store the lead's conversation at its next turn, from which forked steps start."""
        self._prefix = tuple(messages)
        # Steps of a rejected plan are already running: the next plan changes them.
        self._has_plan = self._has_plan or bool(self._draft.streamed)
        self._draft = PlanDraft(self._planner)

    def feed(self, fragment: CallDelta) -> None:
        """Start the steps of the first plan while it streams; later plans are applied as a whole."""
        if not self._has_plan:
            for step in self._draft.feed(fragment):
                self._add(step)

    def restart(self) -> None:
        """Discard an interrupted plan; its running steps stay until the plan is complete."""
        self._draft.restart()

    def prefix_of(self, step_id: str) -> tuple[Message, ...]:
        """Return the conversation that a step forks."""
        return self._prefixes.get(step_id, ())

    async def hand_out(self, steps: Sequence[JsonObject], cancel: tuple[str, ...]) -> str:
        """Run steps and return the results that are new to the lead, when all have ended or one ended unexpectedly."""
        # Right after a resume, results that the lead knows may not be loaded yet.
        await self._wait(lambda: not any(step.id in self._reported for step in self._open))
        self._cancel(cancel)
        given = self._revise(steps) if self._has_plan else self._first_plan(steps)
        if not (given or self._open or self._unreported):
            raise ToolError(NOTHING_RUNS)
        self._has_plan = True
        if self._permissions:
            self._permissions.is_complete.set()
        self._release()
        await self._wait(self._must_decide)
        return await self._describe()

    async def unreported(self) -> str:
        """Return the results that the lead has not seen, when all steps have ended or one ended unexpectedly."""
        self._release()
        await self._wait(self._must_decide)
        return await self._describe() if self._unreported else ""

    async def after_step(self, step: PlanStep, response: ExecutorResponse) -> None:
        """Wait until the dependents of a step may start: after an unexpected end the lead decides first."""
        settings = self._settings
        if step.id == LEAD:
            self._release(all_of_them=True)
        can_decide = not self._state.lead_ended.is_set() and self._early_returns < settings.max_replans
        if step.id in self._reported or not can_decide:
            return
        # While the plan is streaming, more steps may follow.
        has_others = bool(self._state.waiting) or not self._has_plan
        why = replan_reason(step, response, policy=settings.policy, has_waiting=has_others)
        if why is not None:
            self._surprises.append(surprise := _Surprise(why=why))
            self._state.changed.set()
            await surprise.decided.wait()

    def stop_all(self) -> None:
        """Stop the remaining steps when the lead has ended."""
        if still_open := self._open:
            self._cancel([step.id for step in still_open])

    def was_mended(self, lead: ExecutorResponse) -> bool:
        """Whether the lead did work itself after its last plan, and so handled failed steps."""
        tools = [fact.tool for fact in lead.tool_calls]
        last_plan = len(tools) - 1 - tools[::-1].index(PLAN_TOOL) if PLAN_TOOL in tools else len(tools)
        return any(fact.success and fact.tool in _WORKING_TOOLS for fact in lead.tool_calls[last_plan + 1 :])

    def may_ask(self) -> bool:
        """Steps of the lead may ask any number of questions."""
        return True

    def _first_plan(self, steps: Sequence[JsonObject]) -> Sequence[PlanStep]:
        """Add the steps that were not streamed, or correct those that were."""
        streamed = self._draft.streamed
        try:
            wanted = self._draft.complete(steps)
        except ToolError:
            self._state.revise((), _REVISED)
            raise
        by_id = {step.id: step for step in wanted}
        if any(by_id.get(step_id) != step for step_id, step in streamed.items()):
            self._cancel(self._draft.stale(wanted))
            self._exchange(wanted, COMPLETE)
        else:
            for step in wanted:
                if step.id not in streamed:
                    self._add(step)
        if wanted:
            self._state.plan_log.complete(COMPLETE)
        return wanted

    def _revise(self, steps: Sequence[JsonObject]) -> Sequence[PlanStep]:
        """Replace the steps that have not started by the given ones."""
        state = self._state
        given = self._draft.complete(steps, {step.id for step in state.plan_log.all_steps})
        if given:
            others = [(step, response) for step, response in state.results if step.id != LEAD]
            failed = {
                step.id: step
                for step, response in others
                if not is_success(response.status) and step.id not in state.replaced
            }
            self._exchange(given, _REVISED, failed)
            # The new steps redo the unfinished work of earlier ones.
            state.replaced |= {step.id for step, response in others if response.status == "partial"}
        return given

    def _exchange(self, steps: Sequence[PlanStep], reason: str, failed: Mapping[str, PlanStep] | None = None) -> None:
        waiting = {step.id for step in self._state.waiting}
        self._state.revise(steps, reason, failed)
        # A step may have a new id.
        for step in self._state.plan_log.steps:
            if step.context == "fork" and (step.id in waiting or step.id not in self._prefixes):
                self._prefixes[step.id] = self._prefix

    def _cancel(self, ids: Sequence[str]) -> None:
        """Stop steps; a step cancelled by the lead is not a failure."""
        waiting = self._state.waiting
        running = {step.id for step in self._open} - {step.id for step in waiting}
        if any(step.id in ids for step in waiting):
            self._state.revise([step for step in waiting if step.id not in ids], _REVISED)
        for step_id in running & set(ids):
            self._control.cancel(step_id, CANCELLED)
            self._state.replaced.add(step_id)

    def _add(self, step: PlanStep) -> None:
        if step.context == "fork":
            self._prefixes.setdefault(step.id, self._prefix)
        if self._state.plan_log.add(step):
            self._state.scheduler.add(step)
        else:
            self._state.scheduler.add_skipped(step, OVER_LIMIT)

    @property
    def _open(self) -> list[PlanStep]:
        return [step for step in self._state.plan_log.steps if step.id != LEAD and not self._state.response_of(step.id)]

    @property
    def _unreported(self) -> list[tuple[PlanStep, ExecutorResponse]]:
        return [pair for pair in self._state.results if pair[0].id != LEAD and pair[0].id not in self._reported]

    def _must_decide(self) -> bool:
        return bool(self._surprises)

    async def _wait(self, is_enough: Callable[[], bool]) -> None:
        """Wait until no step is open or `is_enough` returns true; the lead needs no slot meanwhile."""
        self._state.scheduler.pause(LEAD)
        try:
            while self._open and not is_enough():
                self._state.changed.clear()
                await self._state.changed.wait()
        finally:
            self._state.scheduler.resume(LEAD)

    def _release(self, *, all_of_them: bool = False) -> None:
        """Release steps that ended unexpectedly, because the lead has decided about them."""
        for surprise in self._surprises:
            if surprise.is_told or all_of_them:
                surprise.decided.set()
        self._surprises = [surprise for surprise in self._surprises if not surprise.decided.is_set()]

    async def _describe(self) -> str:
        """Return the new results, the running steps, and the lead's options."""
        fresh, surprises = self._unreported, list(self._surprises)
        self._reported |= {step.id for step, _ in fresh}
        for surprise in surprises:
            surprise.is_told = True
        parts = [await self._report(fresh)] if fresh else []
        if still_open := self._open:
            waiting = {step.id for step in self._state.waiting}
            running = ", ".join(step.id for step in still_open if step.id not in waiting) or "none"
            parts.append(_STATE.format(running=running, waiting=", ".join(sorted(waiting)) or "none"))
            self._early_returns += 1
            parts.append(_WHAT_NOW.format(why="; ".join(surprise.why for surprise in surprises)))
        elif fresh and self._settings.cites:
            parts.append(_CITE.format(example=fresh[0][0].id))
        return "\n\n".join(parts)


def _before_plan_of(step_id: str, conversation: Sequence[Message]) -> tuple[Message, ...]:
    """Return the lead's conversation before it delegated a step; all of it if the step is not in there."""
    for index in range(len(conversation) - 1, -1, -1):
        plans = (call for call in conversation[index].tool_calls if call.name == PLAN_TOOL)
        if any(f"'{step_id}'" in str(call.arguments.get("steps")) for call in plans):
            return tuple(conversation[:index])
    return tuple(conversation)
