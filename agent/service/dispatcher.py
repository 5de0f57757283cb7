"""TaskDispatcher: prepares a task, acquires an executor, runs the task there, and always cleans up."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Protocol

from agent.service.engine import TaskQueue
from agent.service.staging import AttachmentStager, ConfigResolver, PreparedTask, SkillStager
from agent.service.task import Task, TaskOutcome, TaskState
from agent.sessions.store import SessionStore
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from agent.vocabulary.task_config import TaskConfig


class Executors(Protocol):
    """Executors of tasks: child processes of this program, or containers."""

    async def acquire(self, task: Task) -> tuple[str, str | None]:
        """Wait for an executor and return its address and its container, if any."""

    async def execute(self, prepared: PreparedTask, executor_url: str, container_id: str | None) -> TaskOutcome:
        """Run a task on an executor until it ends."""

    async def release(self, task: Task, container_id: str | None, *, has_failed: bool) -> None:
        """Release an executor after its task ended, also after a failure."""


class Handover(Protocol):
    """Transfers the session of a task between machines."""

    async def fetch(self, session_id: str) -> None:
        """Fetch a session that another machine has worked on, if it is newer than the local one."""

    async def follow(self, session_id: str) -> None:
        """Upload a running session after every finished step, until cancelled."""

    async def store(self, session_id: str) -> None:
        """Upload a session for other machines."""


class TaskDispatcher:
    """Runs claimed tasks, one call per attempt."""

    def __init__(
        self,
        *,
        tasks: TaskQueue,
        store: SessionStore,
        resolver: ConfigResolver,
        skills: SkillStager,
        attachments: AttachmentStager,
        executors: Executors,
        handover: Handover | None = None,
    ) -> None:
        self._tasks = tasks
        self._store = store
        self._resolver = resolver
        self._skills = skills
        self._attachments = attachments
        self._executors = executors
        self._handover = handover

    async def run(self, task: Task) -> TaskOutcome:
        """Run a task that the engine has claimed."""
        request = task.request
        return await self.dispatch(task.task_id, task.session_id, request.prompt, request.config)

    async def dispatch(
        self, task_id: str, session_id: str, prompt: str, config: TaskConfig, sdk_session_id: str | None = None
    ) -> TaskOutcome:
        """Run a task: 1. configuration 2. skills 3. inputs 4. executor 5. run, which sets the session's state.

        A failure of any of them is the outcome of the task, and the executor is released. `sdk_session_id` continues
        the conversation of another session.
        """
        task = await self._tasks.get(task_id)
        session = self._store.open(sdk_session_id or session_id)
        container_id, is_acquired = None, False
        outcome = _failed(AgentError("the task was stopped"))
        try:
            if self._handover:
                await self._handover.fetch(session.id)
            prepared = self._resolver.resolve(task, config)
            staged = await asyncio.to_thread(self._skills.stage, prepared.config, session.root)
            staged = await asyncio.to_thread(self._attachments.stage, staged, session.root)
            executor_url, container_id = await self._executors.acquire(task)
            is_acquired = True
            prepared = PreparedTask(task=task, flags=prepared.flags, config=staged)
            async with self._followed(session.id):
                outcome = await self._executors.execute(prepared, executor_url, container_id)
        except AgentError as error:
            outcome = _failed(error)
        finally:
            if is_acquired:
                has_failed = outcome.state is TaskState.FAILED
                await asyncio.shield(self._executors.release(task, container_id, has_failed=has_failed))
            if self._handover:
                await asyncio.shield(self._handover.store(session.id))
        return outcome

    @contextlib.asynccontextmanager
    async def _followed(self, session_id: str) -> AsyncIterator[None]:
        if self._handover is None:
            yield
            return
        following = asyncio.ensure_future(self._handover.follow(session_id))
        try:
            yield
        finally:
            following.cancel()
            await asyncio.wait((following,))
            if not following.cancelled():
                # Retrieved so that asyncio does not log it; the upload at the end covers a failed one.
                following.exception()


def _failed(error: AgentError) -> TaskOutcome:
    is_transient = error.exit_code == exit_codes.RETRY_LATER
    return TaskOutcome(
        state=TaskState.FAILED,
        exit_code=error.exit_code,
        error=error.message,
        subtype=error.subtype,
        is_transient=is_transient,
    )
