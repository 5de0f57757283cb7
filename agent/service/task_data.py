"""Tasks and schedules as programs read them: the JSON of `--json` and of the API."""

from agent.service.task import Schedule, Task
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import encode


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskData:
    """A task as it is now. Times are UTC; `next_run_time` is null once it has started."""

    task_id: str
    session_id: str
    user_id: str
    prompt: str
    status: str
    mode: str
    priority: int
    created_at: str
    next_run_time: str | None
    started_at: str | None
    ended_at: str | None
    attempt: int
    error: str
    executor_url: str
    container_id: str | None
    worker: str
    waiting: int
    schedule: str
    trace_id: str
    run_id: str
    answer: str
    exit_code: int | None
    cost_usd: float | None
    progress: int | None
    current_step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleData:
    """A schedule and the state of its last task."""

    name: str
    cron: str
    zone: str
    prompt: str
    is_paused: bool
    next_run_time: str | None
    last_run_time: str | None
    last_task_id: str
    last_status: str | None


def task_data(task: Task, run_id: str = "") -> TaskData:
    """Return a task as programs read it; `run_id` is that of its latest run."""
    request, outcome = task.request, task.outcome
    return TaskData(
        task_id=task.task_id,
        session_id=task.session_id,
        user_id=request.user_id,
        prompt=request.prompt,
        status=str(task.state),
        mode=str(request.mode),
        priority=request.priority,
        created_at=_text(task.created_at) or "",
        next_run_time=_text(task.next_run_at),
        started_at=_text(task.started_at),
        ended_at=_text(task.ended_at),
        attempt=task.attempt,
        error=task.error,
        executor_url=task.executor_url,
        container_id=task.container_id,
        worker=task.worker,
        waiting=task.waiting,
        schedule=request.schedule,
        trace_id=request.trace_id,
        run_id=run_id or (outcome.run_id if outcome else ""),
        answer=outcome.answer if outcome else "",
        exit_code=outcome.exit_code if outcome else None,
        cost_usd=outcome.cost_usd if outcome else None,
        progress=task.progress,
        current_step=task.current_step,
    )


def schedule_data(schedule: Schedule) -> ScheduleData:
    """Return a schedule as programs read it."""
    return ScheduleData(
        name=schedule.name,
        cron=schedule.cron,
        zone=schedule.zone,
        prompt=schedule.request.prompt,
        is_paused=schedule.is_paused,
        next_run_time=_text(schedule.next_run_at),
        last_run_time=_text(schedule.last_run_at),
        last_task_id=schedule.last_task_id,
        last_status=str(schedule.last_state) if schedule.last_state else None,
    )


def _text(time: object) -> str | None:
    return None if time is None else str(encode(time))
