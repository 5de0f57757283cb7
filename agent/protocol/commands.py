"""Commands from a front end to a run."""

from pathlib import Path
from typing import Literal, TypeAlias

from agent.vocabulary.plan import Plan
from agent.vocabulary.task_config import TaskConfig
from tooling.contract.action import Scope
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.image import Image


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedRun:
    """A run in the log of its session."""

    log: Path
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Run one task; `files` are included in the request as text or images, `staged` are files in the workspace.

    A given `plan` is executed unchanged, without a planner. A given `context`, with its `schema`, comes from an
    earlier run and is used unchanged; `replays` names that run, for the conversation
    before it. The same applies to `images`, otherwise read from `files`. `notes` are added to the context as data. A
    given `config` replaces the session's configuration; `task_id` and `trace_id` identify the task of the run.
    """

    prompt: str
    stdin: str | None = None
    files: tuple[Path, ...] = ()
    staged: tuple[str, ...] = ()
    plan_only: bool = False
    plan: Plan | None = None
    context: str | None = None
    schema: str = ""
    images: tuple[Image, ...] = ()
    replays: ReplayedRun | None = None
    notes: tuple[str, ...] = ()
    config: TaskConfig | None = None
    task_id: str = ""
    trace_id: str = ""

    @property
    def needs_model(self) -> bool:
        """Whether a model is needed, for planning or for a step of the given plan."""
        return self.plan is None or (self.plan.needs_model and not self.plan_only)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveApproval:
    """Answer an `approval.requested` by its id; `command`, if given, runs instead of the requested one."""

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
    """Send a message to one running step or to all; it is delivered before the model's next turn."""

    text: str
    step_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopStep:
    """Stop one step; its dependents are skipped, other steps continue."""

    step_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLimits:
    """Change the run's total limits; None means no limit."""

    max_tokens: int | None = None
    max_budget_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detach:
    """The front end will send no more answers: open questions get none, approvals are denied."""


Answer: TypeAlias = ResolveApproval | AnswerQuestion
RunControl: TypeAlias = Steer | StopStep | SetLimits | Detach
Command: TypeAlias = Submit | Answer | RunControl
