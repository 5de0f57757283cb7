"""A task as DBOS stores it: the request is the input, later facts are attributes.

Attributes are merged key by key in one statement, so that a worker and a user can write at the same time.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from dbos import WorkflowStatus

from agent.service.task import (
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

# Names of the workflows, stored with every task.
TASK_WORKFLOW = "task"
FIRE_WORKFLOW = "schedule"
# Separates the name of a schedule and the time in the ids of its tasks.
SCHEDULE_SEPARATOR = "@"

CREATED = "created_at"
STARTED = "started_at"
# With milliseconds, which the engine's timestamps lack on some versions of SQLite.
END = "ended_at"
# Set while a process of the task may exist, regardless of the engine's status.
BUSY = "busy"
ATTEMPT = "attempt"
ERROR = "error"
# When a failed task is tried again, while it waits for that.
RETRY_AT = "retry_at"
OUTCOME = "outcome"
EXECUTOR = "executor_url"
CONTAINER = "container_id"
PROGRESS = "progress"
CURRENT = "current_step"
# Beginning of the keys of questions.
QUESTION = "question:"
# A separate key, so that answering and closing a question do not overwrite each other.
_ANSWER = "answer:"
_ANSWER_FIELDS = ("answer", "command", "remember", "remark", "answered_at")

# What the engine calls the states; it does not know the difference between claimed, running and waiting for the next
# attempt, and is done with a task that is being canceled.
STATUSES: Mapping[TaskState, tuple[str, ...]] = {
    TaskState.QUEUED: ("DELAYED", "ENQUEUED", "PENDING"),
    TaskState.CLAIMED: ("PENDING",),
    TaskState.RUNNING: ("PENDING",),
    TaskState.CANCELING: ("CANCELLED",),
    TaskState.CANCELED: ("CANCELLED",),
    TaskState.COMPLETED: ("SUCCESS",),
    TaskState.FAILED: ("ERROR", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"),
}
# The run of such a task waits for answers, or will when another worker resumes it.
WAITING = ("PENDING", "ENQUEUED")


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


def question_facts(question: PendingQuestion) -> dict[str, object]:
    """Return the attributes of a newly asked question."""
    return {f"{QUESTION}{question.question_id}": as_json(question), f"{_ANSWER}{question.question_id}": None}


def closed_facts(question: PendingQuestion) -> dict[str, object]:
    """Return the attribute that closes a question."""
    return {f"{QUESTION}{question.question_id}": as_json(replace(question, state="expired"))}


def answer_facts(question: PendingQuestion) -> dict[str, object]:
    """Return the attribute of an answer."""
    stored = as_json(question)
    return {f"{_ANSWER}{question.question_id}": {name: stored.get(name) for name in _ANSWER_FIELDS}}


def questions_of(status: WorkflowStatus) -> list[PendingQuestion]:
    """Return the questions of a task, oldest first; a closed one stays closed, even if it was answered.

    An open question that a later run asks again is closed: the worker may have been killed before it closed it.
    """
    noted = status.attributes or {}
    found: list[PendingQuestion] = []
    for key, stored in noted.items():
        if not key.startswith(QUESTION) or stored is None:
            continue
        question = decode(PendingQuestion, stored, extra="ignore")
        if answer := noted.get(f"{_ANSWER}{question.question_id}"):
            answered = decode(PendingQuestion, {**stored, **answer}, extra="ignore")
            question = replace(answered, state="answered") if question.state == "open" else answered
        found.append(question)
    found.sort(key=lambda question: question.asked_at)
    return [replace(one, state="expired") if one.state == "open" and _is_repeated(one, found) else one for one in found]


def _is_repeated(question: PendingQuestion, among: Sequence[PendingQuestion]) -> bool:
    return any(other.asked_at > question.asked_at and other.is_repetition_of(question) for other in among)


def request_of(status: WorkflowStatus) -> TaskRequest:
    """Return the request of a task."""
    given = status.input["args"][0] if status.input else {"prompt": ""}
    return decode(TaskRequest, given, extra="ignore")


def task_of(status: WorkflowStatus, alive: Collection[str]) -> Task:
    """Build a task from its row; `alive` are the ids of live workers."""
    noted = status.attributes or {}
    request = request_of(status)
    state = _state(status, noted, alive)
    is_queued = state is TaskState.QUEUED
    # A task that the user queued again starts at once, regardless of its start time.
    is_delayed = status.status == "DELAYED"
    has_outcome = state in (TaskState.COMPLETED, TaskState.FAILED) and noted.get(OUTCOME)
    is_waiting = status.status in WAITING
    return Task(
        task_id=status.workflow_id,
        request=request,
        state=state,
        created_at=_noted_time(noted, CREATED) or _from_ms(status.created_at) or datetime.now(UTC),
        next_run_at=((_from_ms(status.delay_until_epoch_ms) or request.run_at) if is_delayed else None)
        or (_noted_time(noted, RETRY_AT) if is_queued else None),
        started_at=_noted_time(noted, STARTED),
        ended_at=_noted_time(noted, END) or _from_ms(status.completed_at) if state in ENDED else None,
        attempt=int(noted.get(ATTEMPT) or 0),
        error="" if state is TaskState.COMPLETED else str(noted.get(ERROR) or status.error or ""),
        outcome=decode(TaskOutcome, noted[OUTCOME], extra="ignore") if has_outcome else None,
        worker="" if is_queued else status.executor_id or "",
        executor_url=str(noted.get(EXECUTOR) or LOCAL_EXECUTOR),
        container_id=noted.get(CONTAINER),
        waiting=sum(question.state == "open" for question in questions_of(status)) if is_waiting else 0,
        progress=100 if state is TaskState.COMPLETED else noted.get(PROGRESS),
        current_step="" if state in ENDED else str(noted.get(CURRENT) or ""),
    )


def _state(status: WorkflowStatus, noted: Mapping[str, object], alive: Collection[str]) -> TaskState:
    is_busy = bool(noted.get(BUSY))
    match status.status:
        case "PENDING":
            waits = TaskState.QUEUED if noted.get(RETRY_AT) else TaskState.CLAIMED
            return TaskState.RUNNING if is_busy else waits
        case "CANCELLED":
            return TaskState.CANCELING if is_busy and status.executor_id in alive else TaskState.CANCELED
        case other:
            return next(state for state, names in STATUSES.items() if other in names)


def _noted_time(noted: Mapping[str, object], key: str) -> datetime | None:
    text = noted.get(key)
    return datetime.fromisoformat(text) if isinstance(text, str) else None


def _from_ms(number: int | None) -> datetime | None:
    return datetime.fromtimestamp(number / 1000, UTC) if number else None
