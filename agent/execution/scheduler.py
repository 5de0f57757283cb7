"""Runs a graph: a step starts the moment its last dependency succeeds, while the plan may still be arriving."""

import asyncio
from collections.abc import Awaitable, Callable

from agent.execution.ready_queue import ReadyQueue
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import is_success
from agent.vocabulary.step import ExecutorResponse


class Scheduler:
    """Bounded concurrency, no batches; a failing step skips its dependents and nothing else."""

    def __init__(
        self,
        *,
        run_step: Callable[[PlanStep], Awaitable[ExecutorResponse]],
        skip_step: Callable[[PlanStep, str], Awaitable[None]],
        concurrency: int,
    ) -> None:
        self._run_step = run_step
        self._skip_step = skip_step
        self._concurrency = concurrency
        self._queue = ReadyQueue()
        self._tasks: dict[asyncio.Task[ExecutorResponse], PlanStep] = {}
        self._changed = asyncio.Event()
        self._doomed: list[tuple[PlanStep, str]] = []

    def add(self, step: PlanStep) -> None:
        """Take in a step of a plan that is still being written."""
        if reason := self._queue.add(step):
            self._doomed.append((step, reason))
        self._changed.set()

    def seal(self) -> None:
        """Say that the plan is complete."""
        self._queue.seal()
        self._changed.set()

    async def drain(self) -> None:
        """Run everything to its end; a cancellation ends the running steps first."""
        try:
            while True:
                await self._skip_doomed()
                if self._queue.is_done:
                    return
                self._start_ready()
                await self._wait()
                self._collect()
        finally:
            await self._end_running()

    def _start_ready(self) -> None:
        for step in self._queue.take(self._concurrency - self._queue.running):
            self._tasks[asyncio.ensure_future(self._run_step(step))] = step

    async def _wait(self) -> None:
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait([changed, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
        self._changed.clear()

    def _collect(self) -> None:
        for task in [task for task in self._tasks if task.done()]:
            step = self._tasks.pop(task)
            self._doomed += self._queue.finish(step.id, succeeded=is_success(task.result().status))
            self._changed.set()

    async def _skip_doomed(self) -> None:
        self._doomed += self._queue.stuck()
        while self._doomed:
            await self._skip_step(*self._doomed.pop(0))

    async def _end_running(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
