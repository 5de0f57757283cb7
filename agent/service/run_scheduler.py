"""Tasks that runs schedule with the tool schedule_task: entries of the queue, limited per user."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.config.load import load_settings
from agent.config.user_dirs import data_dir
from agent.service.task import DEFAULT_USER, ScheduleMode, Task, TaskQuery, TaskRequest, TaskState
from agent.service.task_service import TaskService
from agent.vocabulary.errors import AgentError
from agent.vocabulary.task_config import TaskConfig
from tooling.contract.context import ExecCtx
from tooling.contract.result import ToolError
from tooling.contract.scheduler import ScheduledKind, ScheduledTask
from tooling.files.open_regular import open_fd

MAX_PER_USER = 5
_LOCK = "schedule.lock"
_POLL_S = 0.02
# A run of its own: it asks the model to make the one call, which is judged like any other.
COMMAND_REQUEST = "Run exactly this command with run_command, once, and report its output:\n\n{command}"
_TOO_MANY = f"Already {MAX_PER_USER} tasks are scheduled; cancel one first."


class QueueScheduler:
    """Adds tasks to the user's queue, which is opened for each call.

    `model` is the model of the run; with `keeps_folder` its tasks work in the folder of the run.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        session_id: str,
        model: str,
        *,
        keeps_folder: bool = True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._environ = environ
        self._session_id = session_id
        self._model = model
        self._keeps_folder = keeps_folder
        self._now = now

    async def add(self, kind: ScheduledKind, content: str, delay_minutes: int, ctx: ExecCtx) -> ScheduledTask:
        """Queue a task for a later time, with its own session."""
        prompt = COMMAND_REQUEST.format(command=content) if kind == "command" else content
        request = TaskRequest(
            prompt=prompt,
            config=TaskConfig(model=self._model),
            mode=ScheduleMode.SCHEDULED,
            run_at=self._now() + timedelta(minutes=delay_minutes),
            cwd=str(ctx.working_dir) if self._keeps_folder else "",
            scheduled_by=self._session_id,
        )
        # Several runs may add at once, and one run several tasks: each counts what the others have added.
        async with self._opened() as service, _one_at_a_time(data_dir(self._environ)):
            if len(await _waiting(service)) >= MAX_PER_USER:
                raise ToolError(_TOO_MANY)
            return _scheduled(await service.create(request))

    async def list(self) -> tuple[ScheduledTask, ...]:
        """Return the tasks scheduled by this user's runs that have not started, the next one first."""
        async with self._opened() as service:
            return tuple(map(_scheduled, await _waiting(service)))

    async def cancel(self, task_id: str) -> ScheduledTask:
        """Cancel a scheduled task by its complete id; other tasks cannot be canceled here."""
        async with self._opened() as service:
            found = next((task for task in await _waiting(service) if task.task_id == task_id), None)
            if found is None:
                raise ToolError(f"Nothing that a run has scheduled has the id {task_id!r}.")
            await service.cancel(task_id)
            return _scheduled(found)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[TaskService]:
        try:
            service = await asyncio.to_thread(self._open)
            try:
                yield service
            finally:
                await service.close()
        except AgentError as error:
            raise ToolError(error.message) from error

    def _open(self) -> TaskService:
        from agent.service.open_service import open_service

        return open_service(load_settings(environ=self._environ), self._environ, self._now).service


@asynccontextmanager
async def _one_at_a_time(data: Path) -> AsyncIterator[None]:
    try:
        fd = open_fd(data / "queue" / _LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise ToolError(f"The queue cannot be locked: {error.strerror}.") from error
    try:
        # Waiting in threads could take all of them, also those that the holder of the lock needs.
        while not _has_locked(fd):  # noqa: ASYNC110 (another process may hold it)
            await asyncio.sleep(_POLL_S)
        yield
    finally:
        os.close(fd)


def _has_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _waiting(service: TaskService) -> list[Task]:
    query = TaskQuery(
        states=frozenset({TaskState.QUEUED}),
        modes=frozenset({ScheduleMode.SCHEDULED}),
        user_id=DEFAULT_USER,
        limit=10_000,
    )
    found = [task for task in await service.list(query) if task.request.scheduled_by]
    return sorted(found, key=lambda task: (task.request.run_at or task.created_at, task.task_id))


def _scheduled(task: Task) -> ScheduledTask:
    head, _, _ = COMMAND_REQUEST.partition("{command}")
    is_command = task.request.prompt.startswith(head)
    return ScheduledTask(
        task_id=task.task_id,
        kind="command" if is_command else "message",
        content=task.request.prompt.removeprefix(head),
        starts_at=f"{(task.request.run_at or task.created_at).astimezone(UTC):%Y-%m-%d %H:%M} UTC",
    )
