"""The tool `plan`: the lead delegates steps, which run in parallel, and reads their results."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal, Protocol, cast

from agent.vocabulary.plan import LEAD, PLAN_TOOL
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject, encode, schema_of
from tooling.contract.result import REFUSED, ToolError, ToolResult
from tooling.contract.tool import Tool, ToolSpec

# Limit for the results of all steps together; longer ones become excerpts with the path of the full text.
RESULT_CHARS = 60_000
LEAD_ONLY = "Only the lead hands out steps. Do this step yourself with the other tools."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStepParams:
    """One step as given by the lead."""

    id: str
    instruction: Annotated[str, "complete in itself"]
    title: str = ""
    depends_on: Annotated[tuple[str, ...], "ids whose results it needs"] = ()
    writes: Annotated[tuple[str, ...], "paths it changes"] = ()
    context: Annotated[Literal["fresh", "fork"], "fork: it knows this conversation"] = "fresh"
    verify: Annotated[str, "a command known to work that shows success"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanParams:
    """Arguments of plan."""

    steps: tuple[PlanStepParams, ...] = ()
    cancel: Annotated[tuple[str, ...], "ids of steps to stop"] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProfiledStepParams(PlanStepParams):
    """A step that may name one of the task's own profiles."""

    profile: Annotated[str, "the agent that does it"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledPlanParams(PlanParams):
    """Arguments of plan in a task with its own profiles."""

    steps: tuple[_ProfiledStepParams, ...] = ()


class StepGraph(Protocol):
    """Runs the steps of a plan."""

    async def hand_out(self, steps: Sequence[JsonObject], cancel: tuple[str, ...]) -> str:
        """Run steps and return the results; raises ToolError if the plan is invalid."""
        ...


class PlanTool(Tool[PlanParams]):
    """Lets the lead delegate parts of its work."""

    params = PlanParams
    spec = ToolSpec(
        name=PLAN_TOOL,
        description=(
            "Hand out steps that run at the same time, each by its own agent; returns their results. Only for several "
            "large parts that do not need each other, after you have looked; do all else yourself. Call it again with "
            "all the work that remains to change the plan, or without steps to wait."
        ),
        parameters=schema_of(PlanParams),
        effect="note",
        timeout_ms=0,
        output_chars=RESULT_CHARS,
    )

    def __init__(self, graph: StepGraph, profiles: Sequence[str] = ()) -> None:
        self._graph = graph
        if profiles:
            self.params = cast(type[PlanParams], ProfiledPlanParams)
            self.spec = replace(self.spec, parameters=schema_of(ProfiledPlanParams))

    async def run(self, params: PlanParams, ctx: ExecCtx) -> ToolResult:
        """Run the steps; the result comes when all have ended, or earlier if one ended unexpectedly."""
        if ctx.step_id != LEAD:
            raise ToolError(LEAD_ONLY, exit_code=REFUSED)
        steps = [step for one in params.steps if isinstance(step := encode(one), dict)]
        return ToolResult(await self._graph.hand_out(steps, params.cancel))
