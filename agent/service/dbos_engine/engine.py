"""Facade of the queue on DBOS: tasks, schedules and questions of a database."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from agent.service.dbos_engine.database import QueueDatabase, open_database
from agent.service.dbos_engine.liveness import open_liveness
from agent.service.dbos_engine.questions import DbosQuestions
from agent.service.dbos_engine.queue import DbosTasks
from agent.service.dbos_engine.records import STATUSES, task_of
from agent.service.dbos_engine.schedules import DbosSchedules
from agent.service.dbos_engine.worker import DbosWorker, WorkerRules
from agent.service.task import QueueStats, TaskState

DEFAULT_LEASE_S = 30.0


class DbosEngine:
    """The queue of a data folder or a PostgreSQL database."""

    def __init__(
        self,
        data: Path,
        url: str = "",
        *,
        lease_s: float = DEFAULT_LEASE_S,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._database: QueueDatabase = open_database(data, url)
        self._client = self._database.client()
        self._liveness = open_liveness(self._database, lease_s)
        reader = self._database.reader()
        self.tasks = DbosTasks(self._database, self._client, reader, self._liveness, now)
        self.schedules = DbosSchedules(self.tasks, self._client, reader, now)
        self.questions = DbosQuestions(self.tasks, now)

    def worker(
        self, rules: WorkerRules, log: Callable[[str, Mapping[str, object]], None] = lambda event, facts: None
    ) -> DbosWorker:
        """Return the worker of this process."""
        return DbosWorker(self._database, self.tasks, self._liveness, rules, log)

    async def stats(self) -> QueueStats:
        """Return figures about tasks and workers."""
        return await self.tasks.call(self._stats)

    async def close(self) -> None:
        """Close the connections."""
        await asyncio.to_thread(self._client.destroy)
        await asyncio.to_thread(self._database.engine.dispose)

    def _stats(self) -> QueueStats:
        counts = self.tasks.count()
        alive = self.tasks.alive()
        by_state = dict.fromkeys(TaskState, 0)
        for state in (TaskState.QUEUED, TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED):
            by_state[state] = sum(counts.get(name, 0) for name in STATUSES[state] if name != "PENDING")
        for row in self.tasks.rows("PENDING", with_input=True):
            by_state[task_of(row, alive).state] += 1
        return QueueStats(
            tasks=by_state,
            open_questions=len(self.questions.open_now()),
            schedules=self.schedules.count(),
            workers=tuple(self._liveness.workers()),
        )
