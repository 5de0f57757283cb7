"""Runs a graph: a step starts the moment its last dependency succeeds, while the plan may still be arriving."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from agent.execution.graph.ready_queue import ReadyQueue, SkippedStep
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
        root: str = "/",
    ) -> None:
        self._run_step = run_step
        self._skip_step = skip_step
        self._concurrency = concurrency
        self._queue = ReadyQueue(root)
        self._running: dict[asyncio.Future[ExecutorResponse], PlanStep] = {}
        self._ended: list[asyncio.Future[ExecutorResponse]] = []
        self._skipping: set[asyncio.Future[None]] = set()
        self._skipped: list[asyncio.Future[None]] = []
        self._to_skip: list[SkippedStep] = []
        self._changed = asyncio.Event()

    def add(self, step: PlanStep) -> None:
        """Take in a step of a plan that is still being written."""
        self._to_skip += self._queue.add(step)
        self._changed.set()

    def seal(self) -> None:
        """Say that the plan is complete."""
        self._queue.seal()
        self._changed.set()

    def is_unstarted(self, step_id: str) -> bool:
        """Say whether a step still waits for its turn."""
        return self._queue.is_unstarted(step_id)

    def add_skipped(self, step: PlanStep, reason: str) -> None:
        """Take in a step of the plan that is not to be run."""
        self._to_skip += self._queue.add_skipped(step, reason)
        self._changed.set()

    def revise(self, steps: Sequence[PlanStep], given_up: Sequence[SkippedStep] = ()) -> None:
        """Put other steps in the place of all that have not started; those `given_up` are not to be run."""
        self._to_skip += self._queue.revise(steps, given_up)
        self._changed.set()

    def pause(self, step_id: str) -> None:
        """Let another step work while this one waits for somebody."""
        self._queue.pause(step_id)
        self._changed.set()

    def resume(self, step_id: str) -> None:
        """Count a step as working again."""
        self._queue.resume(step_id)

    async def drain(self) -> None:
        """Run everything to its end; a cancellation ends the running steps first."""
        try:
            while True:
                self._changed.clear()
                self._collect()
                self._start_skips()
                if self._queue.is_done and not self._skipping:
                    return
                self._start_ready()
                await self._changed.wait()
        finally:
            await self._cancel_running()

    def _start_ready(self) -> None:
        for step in self._queue.pop_ready(self._concurrency - self._queue.active_count):
            task = asyncio.ensure_future(self._run_step(step))
            self._running[task] = step
            task.add_done_callback(self._on_step_done)

    def _on_step_done(self, task: "asyncio.Future[ExecutorResponse]") -> None:
        self._ended.append(task)
        self._changed.set()

    def _collect(self) -> None:
        ended, self._ended = self._ended, []
        for task in ended:
            step = self._running.pop(task)
            self._to_skip += self._queue.finish(step.id, succeeded=is_success(task.result().status))
        while self._skipped:
            self._skipped.pop().result()

    def _start_skips(self) -> None:
        doomed, self._to_skip = self._to_skip + self._queue.pop_cyclic(), []
        for step, reason in doomed:
            # Side by side, because all of them together cost the disk no more than one.
            task = asyncio.ensure_future(self._skip_step(step, reason))
            self._skipping.add(task)
            task.add_done_callback(self._on_skip_done)

    def _on_skip_done(self, task: "asyncio.Future[None]") -> None:
        self._skipping.discard(task)
        self._skipped.append(task)
        self._changed.set()

    async def _cancel_running(self) -> None:
        for task in self._running:
            task.cancel()
        # What is skipped is told to its end: it takes no time.
        ending: list[asyncio.Future[ExecutorResponse] | asyncio.Future[None]]
        ending = [*self._running, *self._skipping, *self._skipped]
        # The first problem is on its way to the edge of the run; the others are heard here, so that nobody logs them.
        await asyncio.gather(*ending, return_exceptions=True)
