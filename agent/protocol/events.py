"""Facts, in the past tense. Their names and fields are the contract of the event stream."""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal, TypeAlias

from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import StepStatus, Subtype
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import CallStatus, FileChange, TaskItem


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """First event of every run; `resumes` names the run it goes on with, `cassette` the file it is recorded in.

    With `plan_only` nothing is executed.
    """

    type: ClassVar[str] = "init"
    model: str
    planner_model: str
    cwd: str
    workspace: str
    backend: str
    approval_mode: str
    tools: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    resumes: str | None = None
    cassette: str | None = None
    plan_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMade:
    """A plan, or a revision of it."""

    type: ClassVar[str] = "plan"
    plan_id: str
    revision: int
    hash: str
    reason: str
    steps: tuple[PlanStep, ...]
    diff: str | None = None
    spent: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """A step began; the attempt stands in the envelope."""

    type: ClassVar[str] = "step.started"
    title: str = ""
    cache: Literal["miss", "hit", "resumed"] = "miss"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMade:
    """A tool call as it stands in a model's message."""

    id: str
    name: str
    input: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSaid:
    """Something said; with `delta` a fragment that may be lost, without it the whole.

    `reasoning` and its signature are kept because some providers refuse to go on with a conversation without them.
    `spent` is what the request cost whose reply this is; it stands last, where it is found without reading the rest.
    """

    type: ClassVar[str] = "message"
    role: str
    content: str
    delta: bool = False
    tool_calls: tuple[CallMade, ...] | None = None
    reasoning: str | None = None
    reasoning_signature: str | None = None
    spent: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """A tool call is about to be judged and run."""

    type: ClassVar[str] = "tool.started"
    tool_id: str
    name: str
    input: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCompleted:
    """A tool call ended; `output` is what the model reads."""

    type: ClassVar[str] = "tool.completed"
    tool_id: str
    name: str
    status: CallStatus
    exit_code: int
    output: str
    display: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested:
    """A person is asked; answered by a command with the same id.

    `rule` is what would be stored if the answer is to last, empty when nothing can be; `involves` names every
    program, redirect target and host in the command.
    """

    type: ClassVar[str] = "approval.requested"
    approval_id: str
    command: str
    cwd: str
    reason: str
    rule: str
    tool: str | None = None
    involves: tuple[str, ...] | None = None
    diff: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalResolved:
    """A decision was made, and by whom."""

    type: ClassVar[str] = "approval.resolved"
    approval_id: str
    decision: Literal["allow", "deny", "defer", "fail"]
    by: str
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked:
    """The work asks the person something."""

    type: ClassVar[str] = "question.asked"
    question_id: str
    question: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered:
    """The person answered, or nobody could (null)."""

    type: ClassVar[str] = "question.answered"
    question_id: str
    answer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCompleted:
    """A step ended, in exactly one way; `key` is the address of its whole result among the session's steps."""

    type: ClassVar[str] = "step.completed"
    status: StepStatus
    summary: str
    verified: bool | None = None
    evidence: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    elapsed_ms: int = 0
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoChanged:
    """The agent's own list changed."""

    type: ClassVar[str] = "todo"
    items: tuple[TaskItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesChanged:
    """Files were written, with their diffs."""

    type: ClassVar[str] = "files"
    changes: tuple[FileChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTried:
    """A command in the box, or a web tool, tried to reach a host."""

    type: ClassVar[str] = "network"
    host: str
    port: int
    allowed: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChanged:
    """Something was remembered, forgotten or made shorter."""

    type: ClassVar[str] = "memory"
    action: Literal["added", "cleared", "compacted"]
    entry: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSpent:
    """What the run has cost so far, and its limits."""

    type: ClassVar[str] = "budget"
    usage: Usage
    cost_usd: float | None
    max_tokens: int | None = None
    max_budget_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningRaised:
    """Something a person should know; the run goes on."""

    type: ClassVar[str] = "warning"
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRaised:
    """Something went wrong that decides how the run ends."""

    type: ClassVar[str] = "error"
    message: str
    hint: str | None = None
    exit_code: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCounts:
    """How many steps ended how."""

    ok: int = 0
    failed: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCompleted:
    """Last event of every run, whatever happened."""

    type: ClassVar[str] = "result"
    subtype: Subtype
    is_error: bool
    exit_code: int
    result: str
    structured_output: object | None = None
    verified: bool | None = None
    plan_id: str | None = None
    steps: StepCounts = field(default_factory=StepCounts)
    artifacts: tuple[str, ...] = ()
    permission_denials: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()
    num_turns: int = 0
    duration_ms: int = 0
    total_cost_usd: float | None = None
    usage: Usage = field(default_factory=Usage)
    model_usage: Mapping[str, Usage] = field(default_factory=dict)
    resume: str | None = None
    error: str | None = None


Event: TypeAlias = (
    RunStarted
    | PlanMade
    | StepStarted
    | MessageSaid
    | ToolStarted
    | ToolCompleted
    | ApprovalRequested
    | ApprovalResolved
    | QuestionAsked
    | QuestionAnswered
    | StepCompleted
    | TodoChanged
    | FilesChanged
    | NetworkTried
    | MemoryChanged
    | BudgetSpent
    | WarningRaised
    | ErrorRaised
    | RunCompleted
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """An event with its place: when, in which order, of which session, run, step and attempt."""

    seq: int
    ts: str
    session_id: str
    run_id: str
    event: Event
    step_id: str | None = None
    attempt: int | None = None

    @property
    def is_durable(self) -> bool:
        """Say whether this event must survive: everything but fragments of text."""
        return not (isinstance(self.event, MessageSaid) and self.event.delta)
