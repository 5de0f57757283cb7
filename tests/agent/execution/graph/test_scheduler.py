"""The scheduler: concurrency, failures, cancellation."""

import asyncio
import time
from dataclasses import replace

import pytest

from agent.execution.graph.scheduler import Scheduler
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorResponse


def step(name: str, *after: str) -> PlanStep:
    return PlanStep(id=name, title=name, instruction=name, depends_on=after)


class FakeSteps:
    """Steps that end when the test ends them."""

    def __init__(self, concurrency: int = 8) -> None:
        self.started: list[str] = []
        self.skipped: dict[str, str] = {}
        self.cancelled: list[str] = []
        self._gates: dict[str, asyncio.Future[str]] = {}
        self.scheduler = Scheduler(concurrency=concurrency)

    async def run(self, one: PlanStep) -> ExecutorResponse:
        self.started.append(one.id)
        try:
            status = await self._gate(one.id)
        except asyncio.CancelledError:
            self.cancelled.append(one.id)
            raise
        return ExecutorResponse(task_id=one.id, status=status, summary="")  # type: ignore[arg-type]

    async def skip(self, one: PlanStep, reason: str) -> None:
        self.skipped[one.id] = reason

    def _gate(self, name: str) -> asyncio.Future[str]:
        return self._gates.setdefault(name, asyncio.get_running_loop().create_future())

    async def end(self, name: str, status: str = "ok") -> None:
        self._gate(name).set_result(status)
        await self.wait_idle()

    async def wait_idle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


async def test_a_step_starts_while_the_plan_is_still_arriving() -> None:
    steps = FakeSteps()
    running = asyncio.ensure_future(steps.scheduler.run(steps))
    steps.scheduler.add(step("a"))
    await steps.wait_idle()
    assert steps.started == ["a"]
    steps.scheduler.add(step("b"))
    await steps.wait_idle()
    assert steps.started == ["a", "b"]
    await steps.end("a")
    await steps.end("b")
    assert not running.done()
    steps.scheduler.seal()
    await asyncio.wait_for(running, 30)


async def test_branches_do_not_wait_for_each_other() -> None:
    steps = FakeSteps()
    for one in (step("slow"), step("fast"), step("after fast", "fast")):
        steps.scheduler.add(one)
    steps.scheduler.seal()
    running = asyncio.ensure_future(steps.scheduler.run(steps))
    await steps.wait_idle()
    await steps.end("fast")
    assert steps.started == ["slow", "fast", "after fast"]
    await steps.end("after fast")
    await steps.end("slow")
    await asyncio.wait_for(running, 30)


async def test_concurrency_is_limited() -> None:
    steps = FakeSteps(concurrency=2)
    for name in "abcd":
        steps.scheduler.add(step(name))
    steps.scheduler.seal()
    running = asyncio.ensure_future(steps.scheduler.run(steps))
    await steps.wait_idle()
    assert steps.started == ["a", "b"]
    await steps.end("b")
    assert steps.started == ["a", "b", "c"]
    for name in "acd":
        await steps.end(name)
    await asyncio.wait_for(running, 30)


async def test_a_failing_step_never_cancels_an_unrelated_one() -> None:
    steps = FakeSteps()
    for one in (step("bad"), step("good"), step("after bad", "bad")):
        steps.scheduler.add(one)
    steps.scheduler.seal()
    running = asyncio.ensure_future(steps.scheduler.run(steps))
    await steps.wait_idle()
    await steps.end("bad", "error")
    assert steps.skipped == {"after bad": "needs bad, which did not succeed"}
    assert steps.cancelled == []
    await steps.end("good")
    await asyncio.wait_for(running, 30)


async def test_cancelling_the_scheduler_cancels_the_running_steps() -> None:
    steps = FakeSteps()
    steps.scheduler.add(step("a"))
    running = asyncio.ensure_future(steps.scheduler.run(steps))
    await steps.wait_idle()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert steps.cancelled == ["a"]


async def test_a_step_that_waits_for_the_user_holds_no_slot() -> None:
    steps = FakeSteps(concurrency=1)
    for name in "abc":
        steps.scheduler.add(step(name))
    steps.scheduler.seal()
    running = asyncio.ensure_future(steps.scheduler.run(steps))
    await steps.wait_idle()
    assert steps.started == ["a"]
    steps.scheduler.pause("a")
    await steps.wait_idle()
    assert steps.started == ["a", "b"]
    steps.scheduler.resume("a")
    await steps.end("b")
    assert steps.started == ["a", "b"]
    await steps.end("a")
    await steps.end("c")
    await asyncio.wait_for(running, 30)


async def test_a_failure_to_report_a_skip_ends_the_run() -> None:
    class NoSkips(FakeSteps):
        async def skip(self, one: PlanStep, reason: str) -> None:
            raise OSError("disk full")

    steps = NoSkips(concurrency=9)
    scheduler = steps.scheduler
    for one in (step("a", "b"), step("b", "a"), step("c", "missing")):
        scheduler.add(one)
    running = asyncio.ensure_future(scheduler.run(steps))
    await steps.wait_idle()
    scheduler.seal()
    await steps.wait_idle()
    assert steps.started == ["c"]
    await steps.end("c")
    with pytest.raises(OSError, match="disk full"):
        await running


async def test_scheduling_five_thousand_steps_takes_little_cpu_time() -> None:
    ran = 0

    class InstantSteps:
        async def run(self, one: PlanStep) -> ExecutorResponse:
            nonlocal ran
            ran += 1
            return ExecutorResponse(task_id=one.id, status="ok", summary="")

        async def skip(self, one: PlanStep, reason: str) -> None:
            raise AssertionError(reason)

    async def cost(count: int) -> float:
        scheduler = Scheduler(concurrency=count)
        started = time.process_time()
        for number in range(count):
            scheduler.add(replace(step(f"s{number}"), writes=("out.txt",) if number % 2 else (f"out/{number}",)))
        scheduler.seal()
        await scheduler.run(InstantSteps())
        return time.process_time() - started

    cost_s = await cost(5000)
    assert ran == 5000
    # `make bench` has the real limit; quadratic work would take a minute.
    assert cost_s < 5
