"""A task: what was asked for, the states it goes through, and what is known about it.

A task is one request that a worker runs later or elsewhere. It has a session, like every run, and one trace id that all
its events share. Times are UTC.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Literal, TypeAlias

from agent.vocabulary.errors import AgentError
from agent.vocabulary.task_config import TaskConfig
from tooling.approvals.manifest import Manifest
from tooling.contract.fast_dataclass import dataclass

# Tasks of a higher priority start first; these are the limits of the number.
MIN_PRIORITY, MAX_PRIORITY = -100, 100
LOCAL_EXECUTOR = "local:"
DEFAULT_USER = "local"


class TaskState(StrEnum):
    """Where a task is between its creation and its end."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    RUNNING = "running"
    CANCELING = "canceling"
    CANCELED = "canceled"
    COMPLETED = "completed"
    FAILED = "failed"


class ScheduleMode(StrEnum):
    """When a task may start: at once, at its time, or at night."""

    IMMEDIATE = "immediate"
    SCHEDULED = "scheduled"
    NIGHTLY = "nightly"


# A claimed or running task returns to the queue when its worker dies or gives it back, and between two attempts. An
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


class IllegalTransition(AgentError):
    """A task cannot go from its state to the requested one."""


def check_transition(task_id: str, before: TaskState, after: TaskState) -> TaskState:
    """Return the new state. Raises IllegalTransition if no task may go there from its present one."""
    if after not in TRANSITIONS[before]:
        possible = ", ".join(sorted(TRANSITIONS[before])) or "nothing"
        raise IllegalTransition(f"task {task_id} is {before} and cannot become {after}", f"it can become: {possible}")
    return after


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """What a user or program asks for; stored with the task as it is.

    `run_at` is the earliest start, None for at once. `cwd` is the user's folder to work in, empty for a workspace of
    the session. `settings` are further settings of the run, as for `--set`. `grants` is everything the run may do
    without asking, from a rehearsal; with `is_unattended` nothing else is asked for, it is denied. `schedule` names the
    schedule that created the task. `trace_id` is 32 hexadecimal digits, made when the task is created.
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
    trace_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """How the run of a task ended; the fields are those of the `result` event.

    `is_transient` says that another attempt may succeed.
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
    """A task as it is now.

    `next_run_at` is when it can start at the earliest, None once it has started. `attempt` counts the runs that were
    begun. `error` is the last one, also while another attempt waits. `worker` is the id of the process that has or had
    it. `executor_url` is `local:` for a child process of the worker, else the address of the executor; `container_id`
    is the container in which that runs, if any. `waiting` is the number of open questions and approvals.
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

    @property
    def session_id(self) -> str:
        """The session that the task's run is part of."""
        return self.request.session_id

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will happen, unless the task is retried."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCreateResponse:
    """The answer to the creation of a task; the names are those of the JSON that programs get."""

    task_id: str
    session_id: str
    status: str
    executor_url: str
    container_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskQuery:
    """Which tasks to list, newest first; None and empty mean all."""

    states: frozenset[TaskState] = frozenset()
    modes: frozenset[ScheduleMode] = frozenset()
    session_id: str = ""
    user_id: str = ""
    schedule: str = ""
    limit: int = 50
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A request that becomes a task again and again.

    `cron` has five fields, or six with seconds first; it is read in the time zone `zone`. `next_run_at` is None while
    it is paused. `last_task_id` is the latest task, `last_state` what became of it.
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
    `reason`, the `rule` that would be saved, the `tool`, what the command `involves` and the `diff` of an edit. After
    `expires_at` the run is told that there was no answer, which is never a yes. `answer` is the text of an answer, or
    the decision about an approval: allow or deny; `remember` how long it lasts, `remark` what to tell the model.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process that runs tasks; `is_alive` is False once its lease has ended or its lock is free."""

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
