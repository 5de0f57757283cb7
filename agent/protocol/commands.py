"""Wishes, in the imperative: what a front end asks of the work."""

from pathlib import Path
from typing import Literal, TypeAlias

from agent.vocabulary.plan import Plan
from tooling.contract.action import Scope
from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Do one task; `files` stand in the request as text, `inputs` are copied into the workspace.

    A `plan` that is given is run as it stands, without a planner. A `context` that is given, with its `schema`, is what
    came with an earlier run: it is used as it stands, and nothing is gathered.
    """

    prompt: str
    stdin: str | None = None
    files: tuple[Path, ...] = ()
    inputs: tuple[Path, ...] = ()
    plan_only: bool = False
    plan: Plan | None = None
    context: str | None = None
    schema: str = ""

    @property
    def needs_model(self) -> bool:
        """Say whether a model is asked at all: by a planner, or by a step of the given plan."""
        return self.plan is None or (self.plan.needs_model and not self.plan_only)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveApproval:
    """Answer an `approval.requested` by its id; `command` runs instead of the one that was asked for."""

    approval_id: str
    decision: Literal["allow", "deny"]
    scope: Scope = "once"
    remark: str = ""
    command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerQuestion:
    """Answer a `question.asked` by its id."""

    question_id: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Steer:
    """Say something to a step at work, or to all of the run: it is heard before the next turn of a model."""

    text: str
    step_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopStep:
    """End one step; those that need it are skipped, the others go on."""

    step_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLimits:
    """Let the run cost so much in all from now on, what it has spent already included; None means no limit."""

    max_tokens: int | None = None
    max_budget_usd: float | None = None


Answer: TypeAlias = ResolveApproval | AnswerQuestion
RunControl: TypeAlias = Steer | StopStep | SetLimits
Command: TypeAlias = Submit | Answer | RunControl
