"""The ports of the task queue, implemented by an engine for durable work.

`agent/service/dbos_engine/` is the adapter for DBOS. Every adapter passes
`tests/agent/service/test_engine_contract.py`.
"""

from collections.abc import Sequence
from typing import Protocol

from agent.service.task import (
    PendingQuestion,
    QueueStats,
    Schedule,
    ScheduleMode,
    Task,
    TaskOutcome,
    TaskProgress,
    TaskQuery,
    TaskRequest,
)
from tooling.contract.fast_dataclass import dataclass


class TaskQueue(Protocol):
    """Tasks that outlive the process that created them, ended ones included."""

    async def submit(self, request: TaskRequest, task_id: str = "") -> Task:
        """Store a task and return it. An existing task with this id is returned unchanged."""

    async def get(self, task_id: str) -> Task:
        """Return a task by its id or a unique beginning of it. Raises InputError if there is none."""

    async def list(self, query: TaskQuery) -> Sequence[Task]:
        """Return tasks, newest first."""

    async def cancel(self, task_id: str) -> Task:
        """Cancel a task: a queued one at once, a running one as soon as its worker has stopped its processes.

        Raises IllegalTransition for a task that has ended.
        """

    async def retry(self, task_id: str) -> Task:
        """Put a failed or canceled task back into the queue; its run resumes without repeating finished steps."""

    async def report(self, session_id: str, progress: TaskProgress) -> None:
        """Store an executor's progress for the running task of a session; only the worker decides how the task ends."""


class Schedules(Protocol):
    """Requests that become tasks at scheduled times."""

    async def add(self, schedule: Schedule) -> Schedule:
        """Store a schedule. Raises InputError if its name is in use, or its cron expression or zone is wrong."""

    async def list(self) -> Sequence[Schedule]:
        """Return all schedules by name."""

    async def pause(self, name: str, *, is_paused: bool) -> Schedule:
        """Pause or resume a schedule. Missed firings are not caught up on."""

    async def run_now(self, name: str) -> Task:
        """Create a task from a schedule, paused or not, in addition to the scheduled ones."""

    async def remove(self, name: str) -> None:
        """Remove a schedule; its tasks are kept."""


class Questions(Protocol):
    """Questions and approvals of runs that have no terminal."""

    async def open(self, task_id: str, question: PendingQuestion) -> None:
        """Store a question of a running task."""

    async def list(self, *, task_id: str = "", is_open: bool = True) -> Sequence[PendingQuestion]:
        """Return questions, oldest first: the open ones, or all questions of tasks that have not ended."""

    async def answer(self, question: PendingQuestion) -> PendingQuestion:
        """Store the answer in `question`, or in the same question asked again by a resumed run.

        Raises NotOpen if it is already answered or expired.
        """

    async def close(self, task_id: str, question_id: str) -> None:
        """Mark a question as expired, because no run waits for it."""


class TaskHandler(Protocol):
    """Runs one attempt of a claimed task; declared here because the engine calls it."""

    async def run(self, task: Task) -> TaskOutcome:
        """Run a task to its end, or resume an earlier attempt.

        The coroutine is cancelled if the user cancels the task or the worker returns it to the queue.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOptions:
    """Options of a worker: its modes and concurrency; with `is_once` it exits when no more task can start now."""

    concurrency: int
    modes: tuple[ScheduleMode, ...]
    is_once: bool = False


class TaskEngine(Protocol):
    """The queue as any process may use it."""

    @property
    def tasks(self) -> TaskQueue: ...

    @property
    def schedules(self) -> Schedules: ...

    @property
    def questions(self) -> Questions: ...

    async def stats(self) -> QueueStats:
        """Return figures about tasks and workers."""

    async def close(self) -> None:
        """Close the connections."""


class TaskWorker(Protocol):
    """The part of a process that runs tasks; at most one per process."""

    async def work(self, handler: TaskHandler, options: WorkOptions) -> int:
        """Run tasks until `stop` is called; return the number of tasks that ended here."""

    async def stop(self, *, hands_back: bool = False) -> None:
        """Start no more tasks, and let `work` return when the running ones end; or return them to the queue."""
