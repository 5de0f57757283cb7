"""A task as DBOS stores it: the request is the input, everything that becomes known later is an attribute.

Attributes are merged key by key in one statement, so that a worker and a user can write at the same time.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from dbos import WorkflowStatus

from agent.service.task import (
    ACTIVE,
    ENDED,
    LOCAL_EXECUTOR,
    MAX_PRIORITY,
    PendingQuestion,
    ScheduleMode,
    Task,
    TaskOutcome,
    TaskRequest,
    TaskState,
)
from tooling.contract.json_codec import JsonObject, decode, encode

# The names of the workflows, which are stored with every task.
TASK_WORKFLOW = "task"
FIRE_WORKFLOW = "schedule"
# Between the name of a schedule and the time, in the ids of its tasks.
SCHEDULE_SEPARATOR = "@"

CREATED = "created_at"
STARTED = "started_at"
# With milliseconds, which the engine's own times do not have on every version of SQLite.
END = "ended_at"
# Set while a process of the task may exist, whatever the engine says about the task.
BUSY = "busy"
ATTEMPT = "attempt"
ERROR = "error"
OUTCOME = "outcome"
EXECUTOR = "executor_url"
CONTAINER = "container_id"
_QUESTION = "question:"

# What the engine calls the states; it does not know the difference between claimed and running, and is done with a
# task that is being canceled.
STATUSES: Mapping[TaskState, tuple[str, ...]] = {
    TaskState.QUEUED: ("DELAYED", "ENQUEUED"),
    TaskState.CLAIMED: ("PENDING",),
    TaskState.RUNNING: ("PENDING",),
    TaskState.CANCELING: ("CANCELLED",),
    TaskState.CANCELED: ("CANCELLED",),
    TaskState.COMPLETED: ("SUCCESS",),
    TaskState.FAILED: ("ERROR", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"),
}


def queue_of(mode: ScheduleMode) -> str:
    """Return the name of the queue for tasks of a mode."""
    return f"windlass-{mode}"


def engine_priority(priority: int) -> int:
    """Return the number that DBOS sorts by, smallest first."""
    return MAX_PRIORITY + 1 - priority


def as_json(value: object) -> JsonObject:
    """Return a dataclass as plain JSON."""
    plain = encode(value)
    if not isinstance(plain, Mapping):
        raise TypeError(f"{type(value).__name__} is not an object")
    return plain


def question_key(question_id: str) -> str:
    """Return the attribute that holds a question."""
    return f"{_QUESTION}{question_id}"


def questions_of(status: WorkflowStatus) -> list[PendingQuestion]:
    """Return the questions of a task, oldest first."""
    stored = (value for key, value in (status.attributes or {}).items() if key.startswith(_QUESTION))
    found = [decode(PendingQuestion, value, extra="ignore") for value in stored if value is not None]
    return sorted(found, key=lambda question: question.asked_at)


def request_of(status: WorkflowStatus) -> TaskRequest:
    """Return what was asked for."""
    given = status.input["args"][0] if status.input else {"prompt": ""}
    return decode(TaskRequest, given, extra="ignore")


def task_of(status: WorkflowStatus, alive: Collection[str]) -> Task:
    """Return a task from its row; `alive` are the workers that are."""
    noted = status.attributes or {}
    request = request_of(status)
    state = _state(status, noted, alive)
    is_queued = state is TaskState.QUEUED
    has_outcome = state in (TaskState.COMPLETED, TaskState.FAILED) and noted.get(OUTCOME)
    is_waiting = state in ACTIVE and state is not TaskState.CANCELING
    return Task(
        task_id=status.workflow_id,
        request=request,
        state=state,
        created_at=_noted_time(noted, CREATED) or _from_ms(status.created_at) or datetime.now(UTC),
        next_run_at=(_from_ms(status.delay_until_epoch_ms) or request.run_at) if is_queued else None,
        started_at=_noted_time(noted, STARTED),
        ended_at=_noted_time(noted, END) or _from_ms(status.completed_at) if state in ENDED else None,
        attempt=int(noted.get(ATTEMPT) or 0),
        error="" if state is TaskState.COMPLETED else str(noted.get(ERROR) or status.error or ""),
        outcome=decode(TaskOutcome, noted[OUTCOME], extra="ignore") if has_outcome else None,
        worker="" if is_queued else status.executor_id or "",
        executor_url=str(noted.get(EXECUTOR) or LOCAL_EXECUTOR),
        container_id=noted.get(CONTAINER),
        waiting=sum(question.state == "open" for question in questions_of(status)) if is_waiting else 0,
    )


def _state(status: WorkflowStatus, noted: Mapping[str, object], alive: Collection[str]) -> TaskState:
    is_busy = bool(noted.get(BUSY))
    match status.status:
        case "PENDING":
            return TaskState.RUNNING if is_busy else TaskState.CLAIMED
        case "CANCELLED":
            return TaskState.CANCELING if is_busy and status.executor_id in alive else TaskState.CANCELED
        case other:
            return next(state for state, names in STATUSES.items() if other in names)


def _noted_time(noted: Mapping[str, object], key: str) -> datetime | None:
    text = noted.get(key)
    return datetime.fromisoformat(text) if isinstance(text, str) else None


def _from_ms(number: int | None) -> datetime | None:
    return datetime.fromtimestamp(number / 1000, UTC) if number else None
