"""The events of a run; their type names and fields are a stable interface."""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal, TypeAlias

from agent.vocabulary.compaction import Compaction
from agent.vocabulary.effects import EffectKind, EffectStatus
from agent.vocabulary.message import CallMade as CallMade
from agent.vocabulary.outcome import ArtifactFile, RunnableFile
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import StepCounts as StepCounts
from agent.vocabulary.status import StepStatus, Subtype
from agent.vocabulary.usage import Usage
from tooling.approvals.manifest import Manifest
from tooling.contract.action import Opinion, Scope
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.image import Image
from tooling.contract.result import CallStatus, FileChange, TaskItem

# The `tool` of an approval request that is about the permissions of a whole plan, and whose command is a manifest.
MANIFEST_TOOL = "manifest"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """First event of every run; `resumes` is the id of the resumed run, `cassette` the file it is recorded in.

    `image` is the container's image, if commands run in one.
    `task_id` is the task of the run in the queue, `trace_id` the trace shared by all events of the task.
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
    context_window: int | None = None
    image: str | None = None
    task_id: str | None = None
    trace_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanUpdated:
    """A plan or a revision of it."""

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
    """A step was started; the envelope has the attempt."""

    type: ClassVar[str] = "step.started"
    title: str = ""
    cache: Literal["miss", "hit", "resumed"] = "miss"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAdded:
    """A message; with `delta` a fragment that may be dropped, otherwise the complete text.

    An `interrupted` message has the text that had arrived when the user stopped the reply. `images` are references: the
    bytes are in the session's `blobs/`. `reasoning`, its signature and the model that signed it are kept because some
    providers reject a conversation without them. `spent` is the usage of the request this replies to; it comes last so
    that it can be found without parsing the rest of the line.
    """

    type: ClassVar[str] = "message"
    role: str
    content: str
    delta: bool = False
    interrupted: bool = False
    tool_calls: tuple[CallMade, ...] | None = None
    reasoning: str | None = None
    reasoning_signature: str | None = None
    reasoning_model: str | None = None
    images: tuple[Image, ...] | None = None
    spent: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """A tool call is about to be judged and run."""

    type: ClassVar[str] = "tool.started"
    tool_id: str
    name: str
    input: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """The last lines of a call that is still running; may be dropped, and is not logged."""

    type: ClassVar[str] = "tool.output"
    tool_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCompleted:
    """A tool call ended; `output` is the text for the model, `images` are what it sees besides.

    `allowed_by` names the rule or mode that allowed the call to write, run or reach something without asking.
    """

    type: ClassVar[str] = "tool.completed"
    tool_id: str
    name: str
    status: CallStatus
    exit_code: int
    output: str
    display: str | None = None
    images: tuple[Image, ...] | None = None
    allowed_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested:
    """The user is asked for approval; the answer is a command with the same id.

    `rule` would be saved for a permanent answer, empty if none can be; `involves` lists every program,
    redirect target and host in the command. `opinion` is that of the reviewer model. With `decided` no user is asked:
    the decision follows.
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
    opinion: Opinion | None = None
    decided: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalResolved:
    """An approval was decided; `by` is who or what decided, `opinion` why, if it was the reviewer model.

    `scope` is the duration of the user's approval, `edited_command` the command as changed by the user.
    """

    type: ClassVar[str] = "approval.resolved"
    approval_id: str
    decision: Literal["allow", "deny", "defer", "fail"]
    by: str
    rule: str = ""
    opinion: Opinion | None = None
    scope: Scope | None = None
    edited_command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestApplied:
    """Permissions apply as one: those of `manifest_file`, or on a sheet that the user approved."""

    type: ClassVar[str] = "manifest"
    by: str
    manifest: Manifest
    manifest_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSaved:
    """A rule was saved because the user allowed something permanently; `folder` is empty if it applies everywhere."""

    type: ClassVar[str] = "rule"
    rule: str
    folder: str
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked:
    """The user is asked a question."""

    type: ClassVar[str] = "question.asked"
    question_id: str
    question: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered:
    """The user answered; null if no user was available."""

    type: ClassVar[str] = "question.answered"
    question_id: str
    answer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCompleted:
    """A step ended; `key` is the key of its complete result in the session's step cache."""

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
    """The agent's task list changed; `progress` is how much of it is completed, in percent."""

    type: ClassVar[str] = "todo"
    items: tuple[TaskItem, ...]
    progress: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesChanged:
    """Files were changed; includes their diffs.

    `command_id` is the call of the command that changed them, None for the file tools. `overlaps` are other steps with
    commands at the same time, which may have made the changes. `skipped` names changes of a command that cannot be
    restored.
    """

    type: ClassVar[str] = "files"
    changes: tuple[FileChange, ...]
    command_id: str | None = None
    overlaps: tuple[str, ...] | None = None
    skipped: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAttempted:
    """A sandboxed command or a web tool tried to connect to a host."""

    type: ClassVar[str] = "network"
    host: str
    port: int
    allowed: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRecorded:
    """An effect outside the workspace begins or ended; `effect_id` is its idempotency key, a `safe` one only reads."""

    type: ClassVar[str] = "effect"
    effect_id: str
    kind: EffectKind
    target: str
    status: EffectStatus
    safe: bool
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRewound:
    """The session was rewound: `before_run` and all runs since, up to this one, left the conversation."""

    type: ClassVar[str] = "rewind"
    before_run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChanged:
    """The memory was changed, cleared or compacted."""

    type: ClassVar[str] = "memory"
    action: Literal["added", "cleared", "compacted"]
    entry: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCompacted:
    """A conversation was shortened to fit the model's context window; sizes are estimates in tokens."""

    type: ClassVar[str] = "context"
    compaction: Compaction
    tokens_before: int
    tokens_after: int
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSpent:
    """The cost of the run so far, and its limits."""

    type: ClassVar[str] = "budget"
    usage: Usage
    cost_usd: float | None
    max_tokens: int | None = None
    max_budget_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningRaised:
    """A problem the user should know about; the run continues."""

    type: ClassVar[str] = "warning"
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRaised:
    """An error that ends the run."""

    type: ClassVar[str] = "error"
    message: str
    hint: str | None = None
    exit_code: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCompleted:
    """Last event of every run, also of a failed one.

    `files` are the artifacts with size and hash, in `cwd`; `missing` is what the manifest does not grant;
    `effects_in_doubt` are effects outside the workspace that may or may not have happened.
    """

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
    files: tuple[ArtifactFile, ...] | None = None
    cwd: str = ""
    permission_denials: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()
    will_run: tuple[RunnableFile, ...] = ()
    num_turns: int = 0
    duration_ms: int = 0
    total_cost_usd: float | None = None
    usage: Usage = field(default_factory=Usage)
    model_usage: Mapping[str, Usage] = field(default_factory=dict)
    resume: str | None = None
    error: str | None = None
    missing: Manifest | None = None
    effects_in_doubt: tuple[str, ...] | None = None


Event: TypeAlias = (
    RunStarted
    | PlanUpdated
    | StepStarted
    | MessageAdded
    | ToolStarted
    | ToolOutput
    | ToolCompleted
    | ApprovalRequested
    | ApprovalResolved
    | ManifestApplied
    | RuleSaved
    | QuestionAsked
    | QuestionAnswered
    | StepCompleted
    | TodoChanged
    | FilesChanged
    | SessionRewound
    | NetworkAttempted
    | EffectRecorded
    | MemoryChanged
    | ContextCompacted
    | BudgetSpent
    | WarningRaised
    | ErrorRaised
    | RunCompleted
)
