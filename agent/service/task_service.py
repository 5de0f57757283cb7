"""TaskService: tasks, schedules and questions for the command line and the HTTP API."""

from collections.abc import Sequence
from typing import Literal

from agent.service.engine import Schedules, TaskEngine
from agent.service.task import (
    PendingQuestion,
    QueueStats,
    Schedule,
    Task,
    TaskCreateResponse,
    TaskQuery,
    TaskRequest,
)
from agent.vocabulary.task_config import TaskConfig


class TaskService:
    """What users and programs do with tasks. Every method raises AgentError with a hint if it cannot be done."""

    def __init__(self, engine: TaskEngine) -> None:
        self._engine = engine

    async def create_task(
        self, user_id: str, prompt: str, config: TaskConfig, session_id: str | None = None
    ) -> TaskCreateResponse:
        """Create a task that runs at once, in a given session or a new one."""
        task = await self.create(
            TaskRequest(user_id=user_id, prompt=prompt, config=config, session_id=session_id or "")
        )
        return TaskCreateResponse(
            task_id=task.task_id,
            session_id=task.session_id,
            status="scheduled",
            executor_url=task.executor_url,
            container_id=task.container_id,
        )

    async def create(self, request: TaskRequest, task_id: str = "") -> Task:
        """Check a request, complete it with session, time and trace id, and put it into the queue.

        `task_id` makes it idempotent: a task with this id that exists already is returned as it is.
        """
        raise NotImplementedError

    async def get(self, task_id: str) -> Task:
        """Return a task by its id or a unique beginning of it. Raises InputError if there is none."""
        return await self._engine.tasks.get(task_id)

    async def list(self, query: TaskQuery) -> Sequence[Task]:
        """Return tasks, newest first."""
        return await self._engine.tasks.list(query)

    async def cancel(self, task_id: str) -> Task:
        """Cancel a task: queued ones at once, a running one with its processes."""
        return await self._engine.tasks.cancel(task_id)

    async def retry(self, task_id: str) -> Task:
        """Put a failed or canceled task back into the queue."""
        return await self._engine.tasks.retry(task_id)

    async def questions(self, *, task_id: str = "", is_open: bool = True) -> Sequence[PendingQuestion]:
        """Return questions and approvals, oldest first."""
        return await self._engine.questions.list(task_id=task_id, is_open=is_open)

    async def answer(self, question_id: str, text: str) -> PendingQuestion:
        """Answer a question by its id, or by the id of a task with exactly one open question."""
        raise NotImplementedError

    async def approve(
        self,
        question_id: str,
        decision: Literal["allow", "deny"],
        *,
        command: str | None = None,
        remember: Literal["run", "project", "always"] | None = None,
        remark: str = "",
    ) -> PendingQuestion:
        """Decide about an approval by its id, or by the id of a task with exactly one; `command` runs instead."""
        raise NotImplementedError

    @property
    def schedules(self) -> Schedules:
        """Pause, resume, remove and list schedules, and run them now."""
        return self._engine.schedules

    async def create_schedule(self, request: TaskRequest, cron: str, *, zone: str = "UTC", name: str = "") -> Schedule:
        """Store a request that becomes a task by the clock."""
        raise NotImplementedError

    async def stats(self) -> QueueStats:
        """Return figures about tasks, questions and workers."""
        return await self._engine.stats()
