"""The ports of the task queue: what an engine of durable work must do, whatever it is built on.

`agent/service/dbos/` is the adapter for DBOS. Every adapter passes `tests/agent/service/test_engine_contract.py`.
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
    TaskQuery,
    TaskRequest,
)
from tooling.contract.fast_dataclass import dataclass


class TaskQueue(Protocol):
    """Tasks that outlive the process that created them, ended ones included."""

    async def submit(self, request: TaskRequest, task_id: str = "") -> Task:
        """Store a task and return it. A task with this id that exists already is returned as it is."""

    async def get(self, task_id: str) -> Task:
        """Return a task by its id or a unique beginning of it. Raises InputError if there is none."""

    async def list(self, query: TaskQuery) -> Sequence[Task]:
        """Return tasks, newest first."""

    async def cancel(self, task_id: str) -> Task:
        """End a task: a queued one at once, a running one as soon as its worker has ended its processes.

        Raises IllegalTransition for a task that has ended.
        """

    async def retry(self, task_id: str) -> Task:
        """Put a failed or canceled task back into the queue; its run resumes, and repeats no finished step."""


class Schedules(Protocol):
    """Requests that become tasks by the clock."""

    async def add(self, schedule: Schedule) -> Schedule:
        """Store a schedule. Raises InputError if its name is in use, or its cron expression or zone is wrong."""

    async def list(self) -> Sequence[Schedule]:
        """Return all schedules by name."""

    async def pause(self, name: str, *, is_paused: bool) -> Schedule:
        """Pause or resume a schedule. What was missed meanwhile is not caught up on."""

    async def run_now(self, name: str) -> Task:
        """Create a task from a schedule, paused or not, besides those of the clock."""

    async def remove(self, name: str) -> None:
        """Remove a schedule; its tasks stay."""


class Questions(Protocol):
    """Questions and approvals of runs that have no terminal."""

    async def open(self, task_id: str, question: PendingQuestion) -> None:
        """Store a question of a running task."""

    async def list(self, *, task_id: str = "", is_open: bool = True) -> Sequence[PendingQuestion]:
        """Return questions, oldest first: those that can be answered, or all of tasks that have not ended."""

    async def answer(self, question: PendingQuestion) -> PendingQuestion:
        """Store the answer in `question`. Raises InputError if it is answered or expired already."""

    async def close(self, task_id: str, question_id: str) -> None:
        """Mark a question as expired: nothing waits for it any more."""


class TaskHandler(Protocol):
    """Runs one attempt of a claimed task; declared here because the engine calls it."""

    async def run(self, task: Task) -> TaskOutcome:
        """Run a task to its end, or resume what an earlier attempt began.

        Cancelled, in the sense of asyncio, if the user cancels the task or the worker gives it back.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOptions:
    """How a worker works: which modes, how many tasks at a time; `is_once` ends it when nothing more can start now."""

    concurrency: int
    modes: tuple[ScheduleMode, ...]
    is_once: bool = False


class TaskEngine(Protocol):
    """The queue as every process may use it."""

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
    """The part of a process that runs tasks; at most one in a process."""

    async def work(self, handler: TaskHandler, options: WorkOptions) -> int:
        """Run tasks until `stop` is called; return how many have ended here."""

    async def stop(self, *, hands_back: bool = False) -> None:
        """Start no more tasks and let `work` return when the running ones end; or give them back to the queue."""
