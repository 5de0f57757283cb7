"""Measure the overhead of scheduling a large graph: adding steps, finding ready ones, skipping."""

import asyncio
import time
from random import Random

from agent.execution.graph.scheduler import Scheduler
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorResponse
from bench.measure import BenchResult, milliseconds
from bench.program import BenchError

STEPS = 5000
ROUNDS = 5
LIMIT_MS = 1000.0


def scheduler() -> list[BenchResult]:
    """Measure a graph whose steps take no time."""
    graph = _graph()
    samples = [asyncio.run(_cost(graph)) for _ in range(ROUNDS + 1)]
    return [milliseconds(f"scheduling a graph of {STEPS} steps", LIMIT_MS, samples[1:])]


async def _cost(graph: list[PlanStep]) -> float:
    ended: list[str] = []

    class Steps:
        async def run(self, step: PlanStep) -> ExecutorResponse:
            await asyncio.sleep(0)
            ended.append(step.id)
            return ExecutorResponse(task_id=step.id, status="error" if len(ended) == STEPS // 2 else "ok", summary="")

        async def skip(self, step: PlanStep, reason: str) -> None:
            ended.append(step.id)

    started = time.perf_counter()
    work = Scheduler(concurrency=32, root="/work")
    for step in graph:
        work.add(step)
    work.seal()
    await work.run(Steps())
    if sorted(ended) != sorted(step.id for step in graph):
        raise BenchError("not every step ended exactly once")
    return time.perf_counter() - started


def _graph() -> list[PlanStep]:
    """Return a graph with chains, crossings and writers of the same files."""
    random = Random(1)
    return [
        PlanStep(
            id=f"s{number}",
            title="",
            instruction="",
            depends_on=tuple({f"s{random.randrange(number)}" for _ in range(random.randrange(4))}) if number else (),
            writes=(f"out/{random.randrange(200)}",) if random.random() < 0.3 else (),
        )
        for number in range(STEPS)
    ]
