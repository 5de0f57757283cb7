"""Runs a graph of steps: each starts when its last dependency succeeds, even while the plan is still streaming."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from agent.execution.graph.ready_queue import ReadyQueue, SkippedStep
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import is_success
from agent.vocabulary.step import ExecutorResponse


class StepRunner(Protocol):
    """Runs or skips one step; responses are published before these return."""

    async def run(self, step: PlanStep) -> ExecutorResponse:
        """Run a step to its response."""
        ...

    async def skip(self, step: PlanStep, reason: str) -> None:
        """Report a step that will never run."""
        ...


class Scheduler:
    """Bounded concurrency without batches; a failing step skips its dependents and nothing else."""

    def __init__(self, *, concurrency: int, root: str = "/") -> None:
        self._concurrency = concurrency
        self._queue = ReadyQueue(root)
        self._running: dict[asyncio.Future[ExecutorResponse], PlanStep] = {}
        self._ended: list[asyncio.Future[ExecutorResponse]] = []
        self._skipping: set[asyncio.Future[None]] = set()
        self._skipped: list[asyncio.Future[None]] = []
        self._to_skip: list[SkippedStep] = []
        self._changed = asyncio.Event()

    def add(self, step: PlanStep) -> None:
        """Add a step of a plan that may still be growing."""
        self._to_skip += self._queue.add(step)
        self._changed.set()

    def seal(self) -> None:
        """Declare the plan complete."""
        self._queue.seal()
        self._changed.set()

    def is_unstarted(self, step_id: str) -> bool:
        """Return whether a step is still waiting to start."""
        return self._queue.is_unstarted(step_id)

    def add_skipped(self, step: PlanStep, reason: str) -> None:
        """Add a step of the plan that must not run."""
        self._to_skip += self._queue.add_skipped(step, reason)
        self._changed.set()

    def revise(self, steps: Sequence[PlanStep], skipped: Sequence[SkippedStep] = ()) -> None:
        """Replace all steps that have not started; the `skipped` ones must not run."""
        self._to_skip += self._queue.revise(steps, skipped)
        self._changed.set()

    def pause(self, step_id: str) -> None:
        """Free the slot of a step that waits for the user or for a new plan."""
        self._queue.pause(step_id)
        self._changed.set()

    def resume(self, step_id: str) -> None:
        """Count a paused step as running again."""
        self._queue.resume(step_id)

    async def run(self, steps: StepRunner) -> None:
        """Run everything to its end; when cancelled, cancel the running steps and wait for them."""
        try:
            while True:
                self._changed.clear()
                self._collect()
                self._start_skips(steps)
                if self._queue.is_done and not self._skipping:
                    return
                self._start_ready(steps)
                await self._changed.wait()
        finally:
            await self._cancel_running()

    def _start_ready(self, steps: StepRunner) -> None:
        for step in self._queue.pop_ready(self._concurrency - self._queue.active_count):
            task = asyncio.create_task(steps.run(step))
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

    def _start_skips(self, steps: StepRunner) -> None:
        to_skip, self._to_skip = self._to_skip + self._queue.pop_cyclic(), []
        for step, reason in to_skip:
            # In parallel, because their events then share one sync to disk.
            task = asyncio.ensure_future(steps.skip(step, reason))
            self._skipping.add(task)
            task.add_done_callback(self._on_skip_done)

    def _on_skip_done(self, task: "asyncio.Future[None]") -> None:
        self._skipping.discard(task)
        self._skipped.append(task)
        self._changed.set()

    async def _cancel_running(self) -> None:
        for task in self._running:
            task.cancel()
        # Skips are not cancelled: they take no time.
        ending: list[asyncio.Future[ExecutorResponse] | asyncio.Future[None]]
        ending = [*self._running, *self._skipping, *self._skipped]
        # The run raises the first error; the others are retrieved here so that asyncio does not log them.
        await asyncio.gather(*ending, return_exceptions=True)
