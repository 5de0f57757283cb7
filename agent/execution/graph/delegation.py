"""The steps that the lead hands out: started while it writes the plan, revised when it says so, reported to it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from agent.config.settings import ReplanPolicy
from agent.execution.graph.replanning import replan_reason
from agent.execution.graph.run_state import OVER_LIMIT, RunState
from agent.execution.step.control import StepControl
from agent.model.port import CallDelta
from agent.planning.graph import find_cycle, topological_order
from agent.planning.plan_reader import PlanReader
from agent.planning.planner import Planner
from agent.planning.steps import StepBuilder
from agent.protocol.commands import StopStep
from agent.vocabulary.message import Message
from agent.vocabulary.plan import COMPLETE, LEAD, PLAN_TOOL, PlanStep
from agent.vocabulary.status import is_success
from agent.vocabulary.step import ExecutorResponse
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject
from tooling.contract.result import ToolError

Report: TypeAlias = Callable[[Sequence[tuple[PlanStep, ExecutorResponse]]], Awaitable[str]]

NOTHING_RUNS = "There is no step: give the steps to hand out."
_REVISED = "revised by the lead"
# The lead's own tools that can do the work of a failed step.
_WORKING_TOOLS = frozenset({"run_command", "write_file", "edit_file", "apply_patch", "delete_file"})
_STATE = "Still running: {running}. Not started: {waiting}."
_WHAT_NOW = (
    "Something ended unexpectedly ({why}). Call plan with all the work that remains, without steps to wait for the "
    "rest, or go on yourself."
)
_CITE = "After each fact put the id of the result it comes from in square brackets, such as [{example}]."


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationSettings:
    """When unexpected results go back to the lead at once, and how often."""

    policy: ReplanPolicy = "surprise"
    max_replans: int = 3
    cites: bool = True


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
    ) -> None:
        self._state = state
        self._control = control
        self._planner = planner
        self._report = report
        self._settings = settings or DelegationSettings()
        self._prefix: tuple[Message, ...] = ()
        self._prefixes: dict[str, tuple[Message, ...]] = {}
        self._reader, self._builder = PlanReader(), StepBuilder("")
        self._streamed: dict[str, PlanStep] = {}
        self._stream_index: int | None = None
        self._has_plan = False
        self._reported: set[str] = set()
        self._surprises: list[str] = []
        self._early_returns = 0
        self._decided = asyncio.Event()

    def begin_turn(self, messages: Sequence[Message]) -> None:
        """Note what the lead knows at its next turn: steps that fork its conversation begin with that."""
        self._prefix = tuple(messages)
        self._reader, self._builder = PlanReader(), self._new_builder()
        self._streamed, self._stream_index = {}, None

    def feed(self, fragment: CallDelta) -> None:
        """Start the steps of the first plan while it is being written; a later plan changes things as a whole."""
        if self._has_plan or self._stream_index not in (None, fragment.index):
            return
        self._stream_index = fragment.index
        for raw in self._reader.feed(fragment.text):
            step = self._build(raw)
            if step.id not in self._streamed:
                self._streamed[step.id] = step
                self._add(step)

    def restart(self) -> None:
        """Forget a plan that broke off; its steps that already run stay."""
        self._reader.restart()
        self._builder, self._stream_index = self._new_builder(), None

    def prefix_of(self, step_id: str) -> tuple[Message, ...]:
        """Return the conversation that a step forks."""
        return self._prefixes.get(step_id, ())

    async def hand_out(self, steps: Sequence[JsonObject], cancel: tuple[str, ...]) -> str:
        """Run steps and return the results that are new to the lead, when all ended or one did unexpectedly."""
        self._cancel(cancel)
        given = self._first_plan(steps) if self._streamed or not self._has_plan else self._revise(steps)
        self._has_plan, self._streamed = True, {}
        self._release()
        if not (given or self._open or self._unreported):
            raise ToolError(NOTHING_RUNS)
        await self._wait(lambda: bool(self._surprises))
        return await self._describe()

    async def unreported(self) -> str:
        """Wait for all steps and return the results that the lead has not seen."""
        self._release()
        await self._wait(lambda: False)
        return await self._describe() if self._unreported else ""

    async def after_step(self, step: PlanStep, response: ExecutorResponse) -> None:
        """Return when the dependents of a step may start: after an unexpected end the lead decides first."""
        settings = self._settings
        if step.id == LEAD:
            self._release()
            return
        has_others = bool(self._state.waiting)
        why = replan_reason(step, response, policy=settings.policy, has_waiting=has_others)
        if why is None or self._early_returns >= settings.max_replans:
            return
        self._surprises.append(why)
        self._state.changed.set()
        await self._decided.wait()

    def stop_all(self) -> None:
        """Stop the steps that are left when the lead has ended."""
        if still_open := self._open:
            self._cancel([step.id for step in still_open])
            self._release()

    def was_mended(self, lead: ExecutorResponse) -> bool:
        """Whether the lead did something itself after its last plan: it then took care of what failed."""
        tools = [fact.tool for fact in lead.tool_calls]
        last_plan = len(tools) - 1 - tools[::-1].index(PLAN_TOOL) if PLAN_TOOL in tools else len(tools)
        return any(fact.success and fact.tool in _WORKING_TOOLS for fact in lead.tool_calls[last_plan + 1 :])

    def may_ask(self) -> bool:
        """Steps of the lead may ask as often as they need to."""
        return True

    def _first_plan(self, steps: Sequence[JsonObject]) -> list[PlanStep]:
        """Add the steps that were not streamed; drop dependencies that do not exist and steps of a cycle."""
        wanted = [self._streamed.get(str(raw.get("id"))) or self._build(raw) for raw in steps]
        wanted = list({step.id: step for step in wanted}.values())
        known = {step.id for step in wanted}
        wanted = [replace(step, depends_on=tuple(d for d in step.depends_on if d in known)) for step in wanted]
        if cycle := find_cycle(wanted):
            self._state.revise((), _REVISED)
            raise ToolError(f"These steps wait for each other: {' → '.join(cycle)}. Plan them again.")
        if any(self._streamed.get(step.id) not in (None, step) for step in wanted):
            self._state.revise(wanted, COMPLETE)
        for step in topological_order(wanted):
            if step.id not in self._streamed:
                self._add(step)
        self._state.plan_log.complete(COMPLETE)
        return wanted

    def _revise(self, steps: Sequence[JsonObject]) -> list[PlanStep]:
        """Exchange the steps that have not started for the given ones."""
        known = {step.id for step in self._state.plan_log.all_steps}
        given = [self._build(raw) for raw in steps]
        known |= {step.id for step in given}
        given = [replace(step, depends_on=tuple(d for d in step.depends_on if d in known)) for step in given]
        if cycle := find_cycle(given):
            raise ToolError(f"These steps wait for each other: {' → '.join(cycle)}. Plan them again.")
        if given:
            failed = {
                step.id: step
                for step, response in self._state.results
                if step.id != LEAD and not is_success(response.status) and step.id not in self._state.replaced
            }
            for step in given:
                self._remember_prefix(step)
            self._state.revise(topological_order(given), _REVISED, failed)
        return given

    def _cancel(self, ids: Sequence[str]) -> None:
        waiting = self._state.waiting
        if any(step.id in ids for step in waiting):
            self._state.revise([step for step in waiting if step.id not in ids], _REVISED)
        for step_id in ids:
            if step_id != LEAD:
                self._control.stop(StopStep(step_id=step_id))

    def _build(self, raw: JsonObject) -> PlanStep:
        step = self._builder.build(raw)
        step = replace(step, context="fork" if raw.get("context") == "fork" else "fresh")
        return self._planner.with_estimate(step)

    def _new_builder(self) -> StepBuilder:
        return StepBuilder("", self._planner.capabilities, taken=(LEAD,))

    def _add(self, step: PlanStep) -> None:
        self._remember_prefix(step)
        if self._state.plan_log.add(step):
            self._state.scheduler.add(step)
        else:
            self._state.scheduler.add_skipped(step, OVER_LIMIT)

    def _remember_prefix(self, step: PlanStep) -> None:
        if step.context == "fork":
            self._prefixes.setdefault(step.id, self._prefix)

    @property
    def _open(self) -> list[PlanStep]:
        return [step for step in self._state.plan_log.steps if step.id != LEAD and not self._state.response_of(step.id)]

    @property
    def _unreported(self) -> list[tuple[PlanStep, ExecutorResponse]]:
        return [pair for pair in self._state.results if pair[0].id != LEAD and pair[0].id not in self._reported]

    async def _wait(self, is_enough: Callable[[], bool]) -> None:
        """Wait until no step is open, or that is enough; the lead needs no slot meanwhile."""
        self._state.scheduler.pause(LEAD)
        try:
            while self._open and not is_enough():
                self._state.changed.clear()
                await self._state.changed.wait()
        finally:
            self._state.scheduler.resume(LEAD)

    def _release(self) -> None:
        """Let steps that ended unexpectedly go: the lead has decided."""
        self._surprises = []
        self._decided.set()
        self._decided = asyncio.Event()

    async def _describe(self) -> str:
        """Return the new results, what still runs, and what the lead may do about it."""
        fresh = self._unreported
        self._reported |= {step.id for step, _ in fresh}
        parts = [await self._report(fresh)] if fresh else []
        if still_open := self._open:
            waiting = {step.id for step in self._state.waiting}
            running = ", ".join(step.id for step in still_open if step.id not in waiting) or "none"
            parts.append(_STATE.format(running=running, waiting=", ".join(sorted(waiting)) or "none"))
            self._early_returns += 1
            parts.append(_WHAT_NOW.format(why="; ".join(self._surprises)))
        elif fresh and self._settings.cites:
            parts.append(_CITE.format(example=fresh[0][0].id))
        return "\n\n".join(parts)
