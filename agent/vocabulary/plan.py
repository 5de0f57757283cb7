"""A plan: a graph of steps."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass

StepType: TypeAlias = Literal["task", "tool", "ask_user"]
# Initial context of a step: its instruction alone, or the whole conversation of the lead.
StepContext: TypeAlias = Literal["fresh", "fork"]

# The step that works on the whole request, and the tool with which it delegates further steps.
LEAD, PLAN_TOOL = "lead", "plan"
CheckAuthor: TypeAlias = Literal["user", "model"]

# Reason for announcing a plan. Only a streaming plan is incomplete. Reasons that end in a colon are followed by text.
REQUEST, STREAMING, COMPLETE, FILE, RESUMED = "request", "streaming", "complete", "file", "resumed"
SURPRISE, ANSWER, ASSUMPTION = "surprise: ", "answer: ", "assumption: "


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One step: its instruction, dependencies, files and tools.

    A `tool` step is one call of `tool` with `args` and needs no model. `verify` is a check: a command that succeeds
    only if the step achieved its goal. `verify_by` is its author: a model may guess a check that cannot work.
    """

    id: str
    title: str
    instruction: str
    type: StepType = "task"
    depends_on: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] | None = None
    context: StepContext = "fresh"
    profile: str = "default"
    model: str = ""
    tool: str = ""
    args: Mapping[str, object] = field(default_factory=dict)
    expect: str = ""
    verify: str = ""
    verify_by: CheckAuthor = "user"
    timeout_s: float | None = None
    ask_question: str | None = None
    ask_options: tuple[str, ...] = ()
    est_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Steps in dependency order, or a direct answer without steps."""

    steps: tuple[PlanStep, ...] = ()
    answer: str | None = None
    revision: int = 1
    reason: str = "request"

    @property
    def needs_model(self) -> bool:
        """Whether any step needs a model; tool calls and questions do not."""
        return any(step.type == "task" for step in self.steps)
