"""The plan of one turn of the lead: its steps while they stream, then the complete plan."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from agent.model.port import CallDelta
from agent.planning.graph import find_cycle, topological_order
from agent.planning.plan_reader import PlanReader
from agent.planning.planner import Planner
from agent.planning.steps import StepBuilder
from agent.vocabulary.plan import LEAD, PlanStep
from tooling.contract.json_codec import JsonObject
from tooling.contract.result import ToolError


class PlanDraft:
    """Builds the steps of one plan; a step has the same id while it streams and in the complete plan."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._reader, self._builder = PlanReader(), self._new_builder()
        self._index: int | None = None
        self.streamed: dict[str, PlanStep] = {}

    def feed(self, fragment: CallDelta) -> list[PlanStep]:
        """Return the steps that a fragment completes; only the first plan of a turn streams."""
        if self._index not in (None, fragment.index):
            return []
        self._index = fragment.index
        built = [self._build(raw, self._builder) for raw in self._reader.feed(fragment.text)]
        fresh = [step for step in built if step.id not in self.streamed]
        self.streamed.update((step.id, step) for step in fresh)
        return fresh

    def restart(self) -> None:
        """Restart reading the plan; the streamed steps are kept."""
        self._reader.restart()
        self._builder, self._index = self._new_builder(), None

    def complete(self, steps: Sequence[JsonObject], known: Collection[str] = ()) -> tuple[PlanStep, ...]:
        """Return the steps of a whole plan, dependencies first and only on `known` steps and its own.

        Raises ToolError if steps wait for each other.
        """
        builder = self._new_builder()
        built = [self._build(raw, builder) for raw in steps]
        ids = {*known, *(step.id for step in built)} - {LEAD}
        built = [replace(step, depends_on=tuple(dep for dep in step.depends_on if dep in ids)) for step in built]
        if cycle := find_cycle(built):
            raise ToolError(f"These steps wait for each other: {' → '.join(cycle)}. Plan them again.")
        return topological_order(built)

    def stale(self, plan: Sequence[PlanStep]) -> list[str]:
        """Return the streamed steps that the complete plan lacks, because a retried reply differed."""
        work = {(step.id, step.instruction) for step in plan}
        return [step.id for step in self.streamed.values() if (step.id, step.instruction) not in work]

    def _build(self, raw: JsonObject, builder: StepBuilder) -> PlanStep:
        step = builder.build(raw)
        step = replace(step, context="fork" if raw.get("context") == "fork" else "fresh")
        return self._planner.with_estimate(step)

    def _new_builder(self) -> StepBuilder:
        return StepBuilder("", self._planner.capabilities)
