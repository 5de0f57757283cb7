"""Measure graphs of independent steps against their critical path: planner, one step, composer."""

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median

from bench.measure import BenchResult, format_ms, ratio, sample_interleaved
from bench.program import BenchError, Home, ProcessRun, reply_ended_at
from bench.replies import DONE, plan
from tests.provider.replies import Pace
from tests.provider.threaded import ThreadedProvider

LATENCY_S = 0.3
CRITICAL_PATH_S = 3 * LATENCY_S
ROUNDS = 7
WIDE = 128
LIMITS = {8: 1.15, 32: 1.3, 128: 1.8, 512: 4.0}


def graph() -> list[BenchResult]:
    """Measure runs from first request to last byte, against three latencies, with all steps at once."""
    pace = Pace(head_s=LATENCY_S)
    runs: dict[int, list[ProcessRun]] = {steps: [] for steps in LIMITS}
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(pace=pace) as provider:
        home = Home(Path(name), provider, planning="always")

        def span(steps: int) -> float:
            provider.reply(plan(steps), *[DONE] * (steps + 1))
            run = home.agent_run("--concurrency", str(steps), "--max-steps", str(steps + 1))
            runs[steps].append(run)
            return _span(run, steps)

        samples = sample_interleaved(ROUNDS, *(partial(span, steps) for steps in LIMITS))
    spans = [_figure(steps, taken, runs[steps][1:]) for steps, taken in zip(LIMITS, samples, strict=True)]
    return [*spans, _first_request(runs), _cpu_per_step(runs)]


def _span(run: ProcessRun, steps: int) -> float:
    if len(run.requests) != steps + 2:
        raise BenchError(f"{steps} steps took {len(run.requests)} requests instead of {steps + 2}")
    return max(reply_ended_at(request) for request in run.requests) - run.requests[0].received_at


def _first_request(runs: Mapping[int, list[ProcessRun]]) -> BenchResult:
    """Compare the start of the widest run with that of the narrowest: how wide it is must not matter."""
    wide, narrow = ([run.until_first_request for run in runs[steps][1:]] for steps in (WIDE, min(LIMITS)))
    return ratio(f"start → first request of {WIDE} steps at once, against {min(LIMITS)}", 1.15, wide, narrow)


def _cpu_per_step(runs: Mapping[int, list[ProcessRun]]) -> BenchResult:
    few, many = min(LIMITS), WIDE
    used = {steps: median(run.cpu_s for run in runs[steps][1:]) for steps in (few, many)}
    a_step = (used[many] - used[few]) / (many - few)
    detail = f"{format_ms(used[many])} for {many} steps, less {format_ms(used[few])} for {few}"
    return BenchResult(
        what="CPU time of a step with one request", measured=a_step * 1000, limit=5, unit="ms", detail=detail
    )


def _figure(steps: int, spans: list[float], runs: list[ProcessRun]) -> BenchResult:
    span = median(spans)
    detail = (
        f"{format_ms(span)} from first request to last byte against 3 latencies of {format_ms(LATENCY_S)}, "
        f"median of {len(spans)}; entire process {format_ms(median(run.seconds for run in runs))}"
    )
    what = f"{steps} independent steps against the critical path"
    return BenchResult(what=what, measured=span / CRITICAL_PATH_S, limit=LIMITS[steps], unit="×", detail=detail)
