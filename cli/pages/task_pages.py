"""Pages about tasks, schedules, questions and workers."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent.service.run_questions import input_request
from agent.service.task import PendingQuestion, QueueStats, Schedule, Task, TaskOutcome, TaskRequest, TaskState
from cli.pages.columns import Column, render_table
from cli.pages.pages import indent_lines, one_line
from cli.screen.cards import card_text
from cli.screen.colors import Paint, Tone
from cli.screen.sanitize import sanitize
from tooling.approvals.manifest import Manifest

if TYPE_CHECKING:
    from agent.service.containers.pool import ContainerRow

_PROMPT_CHARS = 60
_TONES: dict[TaskState, Tone] = {
    TaskState.COMPLETED: "good",
    TaskState.FAILED: "bad",
    TaskState.RUNNING: "accent",
    TaskState.CLAIMED: "accent",
    TaskState.CANCELED: "quiet",
}


def format_utc(time: datetime | None) -> str:
    """Return a time in UTC, and in this machine's zone if that is another one."""
    if time is None:
        return ""
    utc, local = time.astimezone(UTC), time.astimezone()
    text = f"{utc:%Y-%m-%d %H:%M} UTC"
    if local.utcoffset() == utc.utcoffset():
        return text
    day = f"{local:%Y-%m-%d} " if local.date() != utc.date() else ""
    return f"{text} ({day}{local:%H:%M %Z})"


def tasks_table(tasks: Sequence[Task], width: int | None, paint: Paint) -> list[str]:
    """Return the table of tasks."""
    columns = [
        Column(header="TASK", cells=[task.task_id for task in tasks], tone="accent"),
        Column(
            header="STATE",
            cells=[_state(task) for task in tasks],
            tones=[_TONES.get(task.state, "warn") for task in tasks],
        ),
        Column(header="WHEN", cells=[_when(task) for task in tasks], drop_priority=2),
        Column(header="MODE", cells=[task.request.mode for task in tasks], drop_priority=3),
        Column(header="PROMPT", cells=[one_line(task.request.prompt, _PROMPT_CHARS) for task in tasks], min_width=16),
    ]
    return render_table(columns, width, paint)


def _state(task: Task) -> str:
    return f"{task.state}, needs an answer" if task.waiting else str(task.state)


def _when(task: Task) -> str:
    return format_utc(task.ended_at or task.started_at or task.next_run_at or task.created_at)


def task_page(task: Task, questions: Iterable[PendingQuestion] = ()) -> list[str]:
    """Return the page of one task."""
    request, outcome = task.request, task.outcome
    fields = (
        ("session", task.session_id),
        ("mode", f"{request.mode}, priority {request.priority}" if request.priority else str(request.mode)),
        ("folder", sanitize(request.cwd or request.config.repo_url) or "a workspace of its own"),
        ("created", format_utc(task.created_at)),
        ("starts", format_utc(task.next_run_at)),
        ("started", format_utc(task.started_at)),
        ("ended", format_utc(task.ended_at)),
        ("attempt", str(task.attempt) if task.attempt else ""),
        ("granted", _granted(request)),
        ("progress", f"{task.progress} % {sanitize(task.current_step)}".strip() if _has_progress(task) else ""),
        ("worker", task.worker),
        ("executor", task.executor_url if task.worker else ""),
        ("model", sanitize(request.config.model or "")),
        ("run", outcome.run_id if outcome else ""),
        ("exit", _exit(outcome) if outcome and outcome.exit_code else ""),
        ("cost", f"${outcome.cost_usd:.4f}" if outcome and outcome.cost_usd else ""),
        ("trace", request.trace_id),
    )
    lines = [f"{task.task_id}  {_state(task)}", *(f"  {name:10}{value}" for name, value in fields if value)]
    lines += ["request:", *indent_lines(request.prompt)]
    if task.error:
        lines += [f"error: {sanitize(task.error)}"]
    for question in questions:
        lines += ["", *question_page(question)]
    if outcome and outcome.answer:
        lines += ["answer:", *indent_lines(outcome.answer)]
    return lines


def _exit(outcome: TaskOutcome) -> str:
    if outcome.state is TaskState.COMPLETED:
        return f"code {outcome.exit_code}, a partial answer; see agent runs show {outcome.run_id}"
    return f"code {outcome.exit_code}"


def grant_facts(grants: Manifest) -> list[tuple[str, Sequence[str]]]:
    """Return what a manifest allows, in words."""
    limit = (f"${grants.max_usd:.4f}",) if grants.max_usd else ()
    facts: tuple[tuple[str, Sequence[str]], ...] = (
        ("run", grants.programs),
        ("write", grants.writes),
        ("delete", grants.deletes),
        ("reach", grants.hosts),
        ("use", grants.tools),
        ("read", grants.secrets),
        ("spend up to", limit),
    )
    return [(what, names) for what, names in facts if names]


def _granted(request: TaskRequest) -> str:
    """Return what a rehearsed task may do without asking; it is asked nothing else."""
    if not request.is_unattended:
        return ""
    facts = grant_facts(request.grants) if request.grants else []
    return sanitize("; ".join(f"{what} {', '.join(names)}" for what, names in facts)) or "nothing"


def _has_progress(task: Task) -> bool:
    return task.progress is not None and not task.is_ended


def schedules_table(schedules: Sequence[Schedule], width: int | None, paint: Paint) -> list[str]:
    """Return the table of schedules."""
    columns = [
        Column(header="NAME", cells=[one.name for one in schedules], tone="accent"),
        Column(header="CRON", cells=[f"{one.cron} {one.zone}" for one in schedules]),
        Column(
            header="NEXT",
            cells=["paused" if one.is_paused else format_utc(one.next_run_at) for one in schedules],
            drop_priority=1,
        ),
        Column(header="LAST", cells=[str(one.last_state or "") for one in schedules], drop_priority=2),
        Column(header="PROMPT", cells=[one_line(one.request.prompt, _PROMPT_CHARS) for one in schedules], min_width=16),
    ]
    return render_table(columns, width, paint)


def question_page(question: PendingQuestion) -> list[str]:
    """Return a question or approval with its exact subject, and how to answer it."""
    expiry = format_utc(question.expires_at)
    lines = [f"{question.question_id}  {question.kind} of {question.task_id}, until {expiry}"]
    lines += [f"  {line}" for line in card_text(input_request(question), step=question.step_id).splitlines()]
    if question.kind == "approval":
        return [*lines, f"answer: agent task approve {question.question_id}  (or --deny)"]
    return [*lines, f'answer: agent task answer {question.question_id} "…"']


def stats_page(stats: QueueStats, containers: "Sequence[ContainerRow]" = ()) -> list[str]:
    """Return statistics of the queue and the containers of executors."""
    lines = [f"{state:10}{stats.tasks.get(state, 0):>8}" for state in TaskState]
    lines += [f"{'questions':10}{stats.open_questions:>8}", f"{'schedules':10}{stats.schedules:>8}"]
    for worker in stats.workers:
        alive = "" if worker.is_alive else ", dead"
        modes = ", ".join(worker.modes)
        lines += [f"worker {worker.worker_id}: process {worker.pid}, {worker.concurrency} at a time, {modes}{alive}"]
    if not stats.workers:
        lines += ["(no workers; start one: agent worker)"]
    return lines + [f"container {row.container_id}: {row.mode}, {row.status}" for row in containers]
