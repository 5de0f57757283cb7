"""RunPullService: pulls tasks from the queue while there is capacity, and has them run."""

from collections.abc import Callable, Sequence

from agent.service.engine import TaskHandler, TaskWorker, WorkOptions
from agent.service.task import ScheduleMode


class RunPullService:
    """Pulls tasks for a dispatcher. `new_worker` returns the worker, which counts, leases and takes over tasks."""

    def __init__(
        self,
        new_worker: Callable[[], TaskWorker],
        dispatcher: TaskHandler,
        *,
        concurrency: int,
        modes: Sequence[ScheduleMode],
    ) -> None:
        self._new_worker = new_worker
        self._dispatcher = dispatcher
        self._concurrency = concurrency
        self._modes = tuple(modes)
        self._worker: TaskWorker | None = None

    async def poll(self, schedule_modes: Sequence[ScheduleMode] | None = None) -> int:
        """Run all tasks that can start now, at most `concurrency` at a time; return the number of tasks that ended."""
        modes = tuple(mode for mode in self._modes if schedule_modes is None or mode in schedule_modes)
        return await self._work(WorkOptions(concurrency=self._concurrency, modes=modes, is_once=True))

    async def run(self) -> int:
        """Run tasks until `stop` is called; return the number of tasks that ended."""
        return await self._work(WorkOptions(concurrency=self._concurrency, modes=self._modes))

    async def stop(self, *, hands_back: bool = False) -> None:
        """Pull no more tasks; with `hands_back` return the running ones to the queue."""
        if self._worker:
            await self._worker.stop(hands_back=hands_back)

    async def _work(self, options: WorkOptions) -> int:
        self._worker = self._new_worker()
        return await self._worker.work(self._dispatcher, options)
