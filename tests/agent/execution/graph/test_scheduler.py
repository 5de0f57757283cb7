"""A graph at work."""

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
    """Steps that end when the test says so."""

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
    work = FakeSteps()
    draining = asyncio.ensure_future(work.scheduler.run(work))
    work.scheduler.add(step("a"))
    await work.wait_idle()
    assert work.started == ["a"]
    work.scheduler.add(step("b"))
    await work.wait_idle()
    assert work.started == ["a", "b"]
    await work.end("a")
    await work.end("b")
    assert not draining.done()
    work.scheduler.seal()
    await asyncio.wait_for(draining, 1)


async def test_there_is_no_barrier_between_branches() -> None:
    work = FakeSteps()
    for one in (step("slow"), step("fast"), step("after fast", "fast")):
        work.scheduler.add(one)
    work.scheduler.seal()
    draining = asyncio.ensure_future(work.scheduler.run(work))
    await work.wait_idle()
    await work.end("fast")
    assert work.started == ["slow", "fast", "after fast"]
    await work.end("after fast")
    await work.end("slow")
    await asyncio.wait_for(draining, 1)


async def test_no_more_steps_run_at_once_than_allowed() -> None:
    work = FakeSteps(concurrency=2)
    for name in "abcd":
        work.scheduler.add(step(name))
    work.scheduler.seal()
    draining = asyncio.ensure_future(work.scheduler.run(work))
    await work.wait_idle()
    assert work.started == ["a", "b"]
    await work.end("b")
    assert work.started == ["a", "b", "c"]
    for name in "acd":
        await work.end(name)
    await asyncio.wait_for(draining, 1)


async def test_a_failing_step_never_cancels_an_unrelated_one() -> None:
    work = FakeSteps()
    for one in (step("bad"), step("good"), step("after bad", "bad")):
        work.scheduler.add(one)
    work.scheduler.seal()
    draining = asyncio.ensure_future(work.scheduler.run(work))
    await work.wait_idle()
    await work.end("bad", "error")
    assert work.skipped == {"after bad": "needs bad, which did not succeed"}
    assert work.cancelled == []
    await work.end("good")
    await asyncio.wait_for(draining, 1)


async def test_cancelling_ends_the_running_steps_first() -> None:
    work = FakeSteps()
    work.scheduler.add(step("a"))
    draining = asyncio.ensure_future(work.scheduler.run(work))
    await work.wait_idle()
    draining.cancel()
    with pytest.raises(asyncio.CancelledError):
        await draining
    assert work.cancelled == ["a"]


async def test_a_step_that_waits_for_a_person_holds_no_slot() -> None:
    work = FakeSteps(concurrency=1)
    for name in "abc":
        work.scheduler.add(step(name))
    work.scheduler.seal()
    draining = asyncio.ensure_future(work.scheduler.run(work))
    await work.wait_idle()
    assert work.started == ["a"]
    work.scheduler.pause("a")
    await work.wait_idle()
    assert work.started == ["a", "b"]
    work.scheduler.resume("a")
    await work.end("b")
    assert work.started == ["a", "b"]
    await work.end("a")
    await work.end("c")
    await asyncio.wait_for(draining, 1)


async def test_what_fails_to_be_told_ends_the_run_and_the_running_steps_with_it() -> None:
    class NoSkips(FakeSteps):
        async def skip(self, one: PlanStep, reason: str) -> None:
            raise OSError("disk full")

    work = NoSkips(concurrency=9)
    scheduler = work.scheduler
    for one in (step("a", "b"), step("b", "a"), step("c", "missing")):
        scheduler.add(one)
    draining = asyncio.ensure_future(scheduler.run(work))
    await work.wait_idle()
    scheduler.seal()
    await work.wait_idle()
    assert work.started == ["c"]
    await work.end("c")
    with pytest.raises(OSError, match="disk full"):
        await draining


async def test_five_thousand_steps_are_no_burden() -> None:
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
        began = time.process_time()
        for number in range(count):
            scheduler.add(replace(step(f"s{number}"), writes=("out.txt",) if number % 2 else (f"out/{number}",)))
        scheduler.seal()
        await scheduler.run(InstantSteps())
        return time.process_time() - began

    cost_s = await cost(5000)
    assert ran == 5000
    # `make bench` has the real limit; looking at every step for every step would take a minute.
    assert cost_s < 5
