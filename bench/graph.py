"""How close a graph of independent steps comes to its critical path: planner, one step, composer."""

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
    """Measure first request to last byte of runs with default flags against three latencies."""
    pace = Pace(head_s=LATENCY_S)
    whole: dict[int, list[float]] = {steps: [] for steps in LIMITS}
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(pace=pace) as provider:
        home = Home(Path(name), provider)

        def span(steps: int) -> float:
            provider.reply(plan(steps), *[DONE] * (steps + 1))
            ended = home.agent_run()
            whole[steps].append(ended.seconds)
            return _span(ended, steps)

        samples = sample_interleaved(ROUNDS, *(partial(span, steps) for steps in LIMITS))
    return [_figure(steps, taken, whole[steps][1:]) for steps, taken in zip(LIMITS, samples, strict=True)]


def _span(ended: ProcessRun, steps: int) -> float:
    if len(ended.requests) != steps + 2:
        raise BenchError(f"{steps} steps took {len(ended.requests)} requests instead of {steps + 2}")
    return max(reply_ended_at(request) for request in ended.requests) - ended.requests[0].received_at


def _figure(steps: int, spans: list[float], whole: list[float]) -> BenchResult:
    span = median(spans)
    detail = (
        f"{format_ms(span)} from first request to last byte against 3 latencies of {format_ms(LATENCY_S)}, "
        f"median of {len(spans)}; whole process {format_ms(median(whole))}"
    )
    what = f"{steps} independent steps against the critical path"
    return BenchResult(what=what, measured=span / CRITICAL_PATH_S, limit=LIMITS[steps], unit="×", detail=detail)
