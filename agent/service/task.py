"""A task: its request, states and current data.

A task is one request that a worker runs later or elsewhere. Like every run it has a session; all its events share one
trace id. Times are UTC.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum
from typing import Literal, TypeAlias

from agent.vocabulary.errors import AgentError, InputError
from agent.vocabulary.task_config import TaskConfig
from tooling.approvals.manifest import Manifest
from tooling.contract.fast_dataclass import dataclass

# Tasks of a higher priority start first; these are the limits of the value.
MIN_PRIORITY, MAX_PRIORITY = -100, 100
LOCAL_EXECUTOR = "local:"
DEFAULT_USER = "local"


class TaskState(StrEnum):
    """State of a task."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    RUNNING = "running"
    CANCELING = "canceling"
    CANCELED = "canceled"
    COMPLETED = "completed"
    FAILED = "failed"


class ScheduleMode(StrEnum):
    """Start condition of a task: at once, at its time, or at night."""

    IMMEDIATE = "immediate"
    SCHEDULED = "scheduled"
    NIGHTLY = "nightly"


# A claimed or running task returns to the queue when its worker dies or releases it, and between attempts. An
# ended one returns to it when the user retries it.
TRANSITIONS: Mapping[TaskState, frozenset[TaskState]] = {
    TaskState.QUEUED: frozenset({TaskState.CLAIMED, TaskState.CANCELED}),
    TaskState.CLAIMED: frozenset({TaskState.RUNNING, TaskState.QUEUED, TaskState.CANCELING, TaskState.FAILED}),
    TaskState.RUNNING: frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELING, TaskState.QUEUED}),
    TaskState.CANCELING: frozenset({TaskState.CANCELED}),
    TaskState.CANCELED: frozenset({TaskState.QUEUED}),
    TaskState.COMPLETED: frozenset(),
    TaskState.FAILED: frozenset({TaskState.QUEUED}),
}
ENDED = frozenset({TaskState.CANCELED, TaskState.COMPLETED, TaskState.FAILED})
ACTIVE = frozenset({TaskState.CLAIMED, TaskState.RUNNING, TaskState.CANCELING})


_DONE: Mapping[TaskState, str] = {
    **{state: str(state) for state in TaskState},
    TaskState.QUEUED: "retried",
    TaskState.CANCELING: "canceled",
    TaskState.RUNNING: "started",
}


class IllegalTransition(AgentError):
    """A task cannot change from its state to the requested one."""


class NotOpen(InputError):
    """A question has been answered or has expired."""


def check_transition(task_id: str, before: TaskState, after: TaskState) -> TaskState:
    """Return the new state. Raises IllegalTransition if the change is not allowed."""
    if after not in TRANSITIONS[before]:
        raise IllegalTransition(f"task {task_id} is {before} and cannot be {_DONE[after]}")
    return after


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """Request of a user or program; stored unchanged with the task.

    `run_at` is the earliest start, None for at once. `cwd` is the user's working folder, empty for a workspace of
    the session. `settings` are further settings of the run, as for `--set`. `grants` is everything the run may do
    without asking, from a rehearsal; with `is_unattended` everything else is denied. `schedule` names the
    schedule that created the task, `scheduled_by` the session whose run did. `trace_id` is 32 hexadecimal digits,
    created with the task.
    """

    prompt: str
    config: TaskConfig = field(default_factory=TaskConfig)
    user_id: str = DEFAULT_USER
    session_id: str = ""
    mode: ScheduleMode = ScheduleMode.IMMEDIATE
    run_at: datetime | None = None
    priority: int = 0
    cwd: str = ""
    backend: str = ""
    callback_url: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    grants: Manifest | None = None
    is_unattended: bool = False
    schedule: str = ""
    scheduled_by: str = ""
    trace_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """Outcome of a task's run; the fields are those of the `result` event.

    `is_transient` means that another attempt may succeed.
    """

    state: TaskState
    exit_code: int
    answer: str = ""
    error: str = ""
    subtype: str = ""
    run_id: str = ""
    cost_usd: float = 0.0
    num_turns: int = 0
    duration_ms: int = 0
    artifacts: tuple[str, ...] = ()
    is_transient: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Current state of a task.

    `next_run_at` is the earliest start, None once it has started. `attempt` counts the started runs.
    `error` is the last one, also while another attempt waits. `worker` is the id of the process that has or had
    it. `executor_url` is `local:` for a child process of the worker, else the address of the executor; `container_id`
    is its container, if any. `waiting` is the number of open questions and approvals. `progress`, in
    percent, and `current_step` are reported by the executor; None if it has not reported them.
    """

    task_id: str
    request: TaskRequest
    state: TaskState
    created_at: datetime
    next_run_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempt: int = 0
    error: str = ""
    outcome: TaskOutcome | None = None
    worker: str = ""
    executor_url: str = LOCAL_EXECUTOR
    container_id: str | None = None
    waiting: int = 0
    progress: int | None = None
    current_step: str = ""

    @property
    def session_id(self) -> str:
        """The session of the task's run."""
        return self.request.session_id

    @property
    def is_ended(self) -> bool:
        """Whether the task has ended; only a retry changes it."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """Progress of a task as reported by its executor."""

    progress: int
    current_step: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCreateResponse:
    """The response to the creation of a task; the names are those of the JSON that programs get."""

    task_id: str
    session_id: str
    status: str
    executor_url: str
    container_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskQuery:
    """Filter for listing tasks, newest first; None and empty match all."""

    states: frozenset[TaskState] = frozenset()
    modes: frozenset[ScheduleMode] = frozenset()
    session_id: str = ""
    user_id: str = ""
    schedule: str = ""
    limit: int = 50
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A request that becomes a task repeatedly.

    `cron` has five fields, or six with seconds first; it is read in the time zone `zone`. `next_run_at` is None while
    it is paused. `last_task_id` is the latest task, `last_state` its state.
    """

    name: str
    cron: str
    zone: str
    request: TaskRequest
    is_paused: bool = False
    next_run_at: datetime | None = None
    last_run_at: datetime | None = None
    last_task_id: str = ""
    last_state: TaskState | None = None


QuestionState: TypeAlias = Literal["open", "answered", "expired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingQuestion:
    """A question or an approval that the run of a task waits for.

    A question has `text` and perhaps `options`. An approval has the exact command or action as `text`, with `cwd`,
    `reason`, the `rule` that would be saved, the `tool`, the parts that it `involves` and the `diff` of an edit.
    After `expires_at` the run gets no answer, which never counts as approval. `answer` is the text of an
    answer, or the decision about an approval: allow or deny; `remember` is its duration, `remark` a text for the model.
    `asked_as` is the id of the question in the run `run_id`.
    """

    question_id: str
    task_id: str
    session_id: str
    kind: Literal["question", "approval"]
    text: str
    asked_at: datetime
    expires_at: datetime
    state: QuestionState = "open"
    options: tuple[str, ...] = ()
    cwd: str = ""
    reason: str = ""
    rule: str = ""
    tool: str = ""
    involves: tuple[str, ...] = ()
    diff: str = ""
    step_id: str = ""
    answer: str = ""
    command: str | None = None
    remember: Literal["run", "project", "always"] | None = None
    remark: str = ""
    answered_at: datetime | None = None
    run_id: str = ""
    asked_as: str = ""

    def asks_the_same(self, other: "PendingQuestion") -> bool:
        """Whether an answer to this question answers the other: all shown text is identical."""
        return self._shown == other._shown

    def is_repetition_of(self, other: "PendingQuestion") -> bool:
        """Whether this is the question of another run of the same task, asked again."""
        return self.run_id != other.run_id and self.asks_the_same(other)

    def answer_to(self, other: "PendingQuestion") -> "PendingQuestion":
        """Return the other question with the answer to this one."""
        return replace(other, answer=self.answer, command=self.command, remember=self.remember, remark=self.remark)

    @property
    def _shown(self) -> tuple[object, ...]:
        what = (self.task_id, self.kind, self.step_id, self.tool, self.text, self.options)
        return (*what, self.cwd, self.reason, self.rule, self.involves, self.diff)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process that runs tasks; `is_alive` is False once its lease has expired or its lock is free."""

    worker_id: str
    host: str
    pid: int
    started_at: datetime
    is_alive: bool
    concurrency: int
    modes: tuple[ScheduleMode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """Figures about the queue: tasks by state, open questions, workers."""

    tasks: Mapping[TaskState, int]
    open_questions: int
    schedules: int
    workers: tuple[Worker, ...]
