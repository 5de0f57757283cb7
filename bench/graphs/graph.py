"""Measure graphs of independent steps against their critical path: planner, one step, composer."""

import tempfile
from functools import partial
from pathlib import Path
from statistics import median

from bench.measure import BenchResult, format_ms, sample_interleaved
from bench.program import BenchError, Home, ProcessRun, reply_ended_at
from bench.replies import DONE, plan
from tests.provider.replies import Pace
from tests.provider.threaded import ThreadedProvider

LATENCY_S = 0.3
CRITICAL_PATH_S = 3 * LATENCY_S
ROUNDS = 9
LIMITS = {8: 1.15, 32: 1.45}


def graph() -> list[BenchResult]:
    """Measure runs with default flags from first request to last byte, against three latencies."""
    pace = Pace(head_s=LATENCY_S)
    lifetimes: dict[int, list[float]] = {steps: [] for steps in LIMITS}
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(pace=pace) as provider:
        home = Home(Path(name), provider, planning="always")

        def span(steps: int) -> float:
            provider.reply(plan(steps), *[DONE] * (steps + 1))
            run = home.agent_run()
            lifetimes[steps].append(run.seconds)
            return _span(run, steps)

        samples = sample_interleaved(ROUNDS, *(partial(span, steps) for steps in LIMITS))
    return [_figure(steps, taken, lifetimes[steps][1:]) for steps, taken in zip(LIMITS, samples, strict=True)]


def _span(run: ProcessRun, steps: int) -> float:
    if len(run.requests) != steps + 2:
        raise BenchError(f"{steps} steps took {len(run.requests)} requests instead of {steps + 2}")
    return max(reply_ended_at(request) for request in run.requests) - run.requests[0].received_at


def _figure(steps: int, spans: list[float], lifetimes: list[float]) -> BenchResult:
    span = median(spans)
    detail = (
        f"{format_ms(span)} from first request to last byte against 3 latencies of {format_ms(LATENCY_S)}, "
        f"median of {len(spans)}; entire process {format_ms(median(lifetimes))}"
    )
    what = f"{steps} independent steps against the critical path"
    return BenchResult(what=what, measured=span / CRITICAL_PATH_S, limit=LIMITS[steps], unit="×", detail=detail)
