"""The task queue in memory: what a test puts in is there at once, and nothing runs."""

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from agent.service.task import (
    NotOpen,
    PendingQuestion,
    QueueStats,
    Schedule,
    Task,
    TaskProgress,
    TaskQuery,
    TaskRequest,
    TaskState,
    Worker,
    check_transition,
)
from agent.vocabulary.errors import InputError

T = TypeVar("T")
NOW = datetime(2026, 5, 4, 12, 30, tzinfo=UTC)


def result_of(coroutine: Coroutine[object, object, T]) -> T:
    """Return what a coroutine of the fakes returns, in any thread: they never wait for anything."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    raise AssertionError("it waits")


class FakeTasks:
    def __init__(self) -> None:
        self.by_id: dict[str, Task] = {}

    async def submit(self, request: TaskRequest, task_id: str = "") -> Task:
        number = len(self.by_id) + 1
        task_id = task_id or f"t{number:010x}"
        task = Task(
            task_id=task_id, request=request, state=TaskState.QUEUED, created_at=NOW + timedelta(minutes=number)
        )
        return self.by_id.setdefault(task_id, task)

    async def get(self, task_id: str) -> Task:
        found = [task for known, task in self.by_id.items() if known.startswith(task_id)]
        if len(found) != 1:
            raise InputError(f"there is no task {task_id!r}", "`agent task list` shows them")
        return found[0]

    async def list(self, query: TaskQuery) -> Sequence[Task]:
        found = [
            task
            for task in reversed(self.by_id.values())
            if (not query.states or task.state in query.states)
            and (not query.modes or task.request.mode in query.modes)
            and query.session_id in ("", task.session_id)
            and query.schedule in ("", task.request.schedule)
        ]
        return found[query.offset : query.offset + query.limit]

    async def cancel(self, task_id: str) -> Task:
        task = await self.get(task_id)
        after = TaskState.CANCELED if task.state is TaskState.QUEUED else TaskState.CANCELING
        return self.put(replace(task, state=check_transition(task.task_id, task.state, after)))

    async def retry(self, task_id: str) -> Task:
        task = await self.get(task_id)
        return self.put(replace(task, state=check_transition(task.task_id, task.state, TaskState.QUEUED)))

    async def report(self, session_id: str, progress: TaskProgress) -> None:
        for task in [*self.by_id.values()]:
            if task.session_id == session_id and task.state is TaskState.RUNNING:
                step, error = progress.current_step, progress.error
                self.put(replace(task, progress=progress.progress, current_step=step, error=error))

    def put(self, task: Task) -> Task:
        self.by_id[task.task_id] = task
        return task


class FakeSchedules:
    def __init__(self, tasks: FakeTasks) -> None:
        self._tasks = tasks
        self.by_name: dict[str, Schedule] = {}

    async def add(self, schedule: Schedule) -> Schedule:
        if schedule.name in self.by_name:
            raise InputError(f"there is a schedule {schedule.name!r} already")
        if len(schedule.cron.split()) not in (5, 6):
            raise InputError(f"{schedule.cron!r} is not a cron expression", "for example: 0 9 * * 1-5")
        self.by_name[schedule.name] = replace(schedule, next_run_at=NOW + timedelta(hours=9))
        return self.by_name[schedule.name]

    async def list(self) -> Sequence[Schedule]:
        return sorted(self.by_name.values(), key=lambda schedule: schedule.name)

    async def pause(self, name: str, *, is_paused: bool) -> Schedule:
        self.by_name[name] = replace(self._get(name), is_paused=is_paused)
        return self.by_name[name]

    async def run_now(self, name: str) -> Task:
        task = await self._tasks.submit(replace(self._get(name).request, schedule=name))
        self.by_name[name] = replace(self._get(name), last_task_id=task.task_id, last_state=task.state)
        return task

    async def remove(self, name: str) -> None:
        self._get(name)
        del self.by_name[name]

    def _get(self, name: str) -> Schedule:
        if name not in self.by_name:
            raise InputError(f"there is no schedule {name!r}", "`agent schedules list` shows them")
        return self.by_name[name]


class FakeQuestions:
    def __init__(self, tasks: FakeTasks) -> None:
        self._tasks = tasks
        self.by_id: dict[str, PendingQuestion] = {}

    async def open(self, task_id: str, question: PendingQuestion) -> None:
        self.by_id[question.question_id] = question
        task = await self._tasks.get(task_id)
        self._tasks.put(replace(task, waiting=task.waiting + 1))

    async def list(self, *, task_id: str = "", is_open: bool = True) -> Sequence[PendingQuestion]:
        if task_id:
            task_id = (await self._tasks.get(task_id)).task_id
        return [
            question
            for question in self.by_id.values()
            if task_id in ("", question.task_id) and (not is_open or question.state == "open")
        ]

    async def answer(self, question: PendingQuestion) -> PendingQuestion:
        stored = self.by_id[question.question_id]
        if stored.state != "open":
            raise NotOpen(f"{question.question_id} is {stored.state} already")
        self.by_id[question.question_id] = replace(question, state="answered", answered_at=NOW)
        task = await self._tasks.get(question.task_id)
        self._tasks.put(replace(task, waiting=task.waiting - 1))
        return self.by_id[question.question_id]

    async def close(self, task_id: str, question_id: str) -> None:
        self.by_id[question_id] = replace(self.by_id[question_id], state="expired")


class FakeEngine:
    """All ports of the queue; `workers` are those that statistics name."""

    def __init__(self) -> None:
        self.tasks = FakeTasks()
        self.schedules = FakeSchedules(self.tasks)
        self.questions = FakeQuestions(self.tasks)
        self.workers: tuple[Worker, ...] = ()

    async def stats(self) -> QueueStats:
        states: Mapping[TaskState, int] = {
            state: sum(task.state is state for task in self.tasks.by_id.values()) for state in TaskState
        }
        return QueueStats(
            tasks=states,
            open_questions=len(await self.questions.list()),
            schedules=len(self.schedules.by_name),
            workers=self.workers,
        )

    async def close(self) -> None:
        pass
