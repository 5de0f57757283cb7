"""A plan: a graph of steps."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass

StepType: TypeAlias = Literal["task", "tool", "ask_user"]

# Why a plan was announced. Only one that is still streaming is incomplete. Those that end in a colon go on with words.
REQUEST, STREAMING, COMPLETE, FILE, RESUMED = "request", "streaming", "complete", "file", "resumed"
SURPRISE, ANSWER, ASSUMPTION = "surprise: ", "answer: ", "assumption: "


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One step: what to do, after which others, touching what, with which tools.

    A `tool` step is one call of `tool` with `args` and needs no model. `verify` is a command that succeeds only
    when the step did what it should.
    """

    id: str
    title: str
    instruction: str
    type: StepType = "task"
    depends_on: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] | None = None
    profile: str = "default"
    model: str = ""
    tool: str = ""
    args: Mapping[str, object] = field(default_factory=dict)
    expect: str = ""
    verify: str = ""
    timeout_s: float | None = None
    ask_question: str | None = None
    ask_options: tuple[str, ...] = ()
    est_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Steps in an order that respects their dependencies; or a direct answer and no step at all."""

    steps: tuple[PlanStep, ...] = ()
    answer: str | None = None
    revision: int = 1
    reason: str = "request"

    @property
    def needs_model(self) -> bool:
        """Say whether a model has work in it; calls and questions are done without one."""
        return any(step.type == "task" for step in self.steps)
