"""Measure graphs of independent steps against their critical path: planner, one step, composer."""

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median

from bench.measure import BenchResult, format_ms, ratio, sample_interleaved
from bench.program import BenchError, Home, ProcessRun, reply_ended_at
from bench.replies import DONE, offers_tools, plan
from tests.provider.replies import Pace
from tests.provider.threaded import ThreadedProvider

LATENCY_S = 0.3
CRITICAL_PATH_S = 3 * LATENCY_S
ROUNDS = 7
FEW, WIDE = 8, 128
LIMITS = {FEW: 1.15, 32: 1.1, WIDE: 1.3, 512: 2.6}
CPU_LIMIT = 6.0


def graph() -> list[BenchResult]:
    """Measure runs from first request to last byte, against three latencies, with all steps at once."""
    pace = Pace(head_s=LATENCY_S)
    runs: dict[int, list[ProcessRun]] = {steps: [] for steps in LIMITS}
    bare: dict[int, list[ProcessRun]] = {FEW: [], WIDE: []}
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(pace=pace) as provider:
        home, body = Home(Path(name), provider, planning="always"), Path(name, "body.json")

        def span(steps: int) -> float:
            provider.reply(plan(steps), *[DONE] * (steps + 1))
            run = home.agent_run("--concurrency", str(steps), "--max-steps", str(steps + 1))
            body.write_bytes(next(request.raw for request in run.requests if offers_tools(request)))
            runs[steps].append(run)
            return _span(run, steps)

        def bare_span(steps: int) -> float:
            provider.reply(plan(steps), *[DONE] * (steps + 1))
            bare[steps].append(home.bare_steps(body, steps))
            return _span(bare[steps][-1], steps)

        samples = sample_interleaved(
            ROUNDS, *(partial(span, steps) for steps in LIMITS), *(partial(bare_span, steps) for steps in bare)
        )
    spans = [_figure(steps, taken, runs[steps][1:]) for steps, taken in zip(LIMITS, samples, strict=False)]
    return [*spans, _first_request(runs), _cpu_per_step(runs, bare)]


def _span(run: ProcessRun, steps: int) -> float:
    if len(run.requests) != steps + 2:
        raise BenchError(f"{steps} steps took {len(run.requests)} requests instead of {steps + 2}")
    return max(reply_ended_at(request) for request in run.requests) - run.requests[0].received_at


def _first_request(runs: Mapping[int, list[ProcessRun]]) -> BenchResult:
    """Compare the start of a wide run with that of the narrowest: the width must not matter."""
    wide, narrow = ([run.until_first_request for run in runs[steps][1:]] for steps in (WIDE, FEW))
    return ratio(f"start → first request of {WIDE} steps at once, against {FEW}", 1.15, wide, narrow)


def _cpu_per_step(runs: Mapping[int, list[ProcessRun]], bare: Mapping[int, list[ProcessRun]]) -> BenchResult:
    """Compare the cost of one more step, using the smallest samples, which a busy machine disturbs least."""
    ours, floor = (
        (min(run.cpu_s for run in some[WIDE][1:]) - min(run.cpu_s for run in some[FEW][1:])) / (WIDE - FEW)
        for some in (runs, bare)
    )
    detail = f"{ours * 1000:.2f} ms against {floor * 1000:.2f} ms, from {FEW} and {WIDE} steps, least of {ROUNDS}"
    what = "CPU time of a step with one request, against bare asyncio"
    return BenchResult(what=what, measured=ours / floor, limit=CPU_LIMIT, unit="×", detail=detail)


def _figure(steps: int, spans: list[float], runs: list[ProcessRun]) -> BenchResult:
    span = median(spans)
    detail = (
        f"{format_ms(span)} from first request to last byte against 3 latencies of {format_ms(LATENCY_S)}, "
        f"median of {len(spans)}; entire process {format_ms(median(run.seconds for run in runs))}"
    )
    what = f"{steps} independent steps against the critical path"
    return BenchResult(what=what, measured=span / CRITICAL_PATH_S, limit=LIMITS[steps], unit="×", detail=detail)
