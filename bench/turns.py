"""Measure the time from a reply to the next request, and the size of the first requests."""

import json
import resource
import tempfile
from itertools import pairwise
from pathlib import Path

from bench.measure import BenchResult, milliseconds, ratio, sample_interleaved
from bench.program import BenchError, Home, ProcessRun, reply_ended_at
from bench.replies import DONE, command, last_result, offers_tools, plan
from tests.provider.server import ReceivedRequest
from tests.provider.threaded import ThreadedProvider

CALLS = 10
RUNS = 20
KILOBYTE = 1000
EMPTY_OUTPUT = "(empty output)"


def turns() -> list[BenchResult]:
    """Measure the time between turns in a loop of ten calls of `true`, and count connections."""
    runs, bare_runs = _loops()
    gaps, bare_gaps = ([gap for run in some for gap in _gaps(run)] for some in (runs, bare_runs))
    connections = max(len({request.connection for request in run.requests}) for run in runs)
    return [
        milliseconds(f"reply → next request in a loop of {CALLS} calls, tool `true`", 10, gaps),
        ratio("the same, against a bare loop that runs `bash -c true`", 3.5, gaps, bare_gaps),
        BenchResult(
            what="connections of that run",
            measured=connections,
            limit=1,
            unit="",
            detail=f"most of {RUNS} runs of {CALLS + 2} requests",
        ),
    ]


def log_file() -> list[BenchResult]:
    """Measure the cost of the log file: CPU time of the same run with the default log, and without one."""
    with tempfile.TemporaryDirectory() as name, ThreadedProvider() as provider:
        home = Home(Path(name), provider, planning="always")

        def cpu_s(level: str) -> float:
            provider.reply(plan(1), *[command(f"true {number}") for number in range(CALLS)], DONE)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            home.agent_run("--approval-mode", "yolo", "--set", f"log_level={level}")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        logged, silent = sample_interleaved(RUNS, lambda: cpu_s("info"), lambda: cpu_s("off"))
    return [ratio(f"CPU time of such a run with its log file against none ({CALLS} calls)", 1.05, logged, silent)]


def first_bodies() -> list[BenchResult]:
    """Measure the size of the first request of the planner and of a step: system prompt and tool schemas."""
    (run,), _ = _loops(runs=1)
    planner, step = run.requests[0], next(request for request in run.requests if offers_tools(request))
    return [
        _body_size("first request of the planner", planner),
        _body_size("first request of a step, including tools", step),
    ]


def _loops(runs: int = RUNS) -> tuple[list[ProcessRun], list[ProcessRun]]:
    """Return runs of our loop and of the bare one, which sends the longest body of ours."""
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(otherwise=DONE) as provider:
        home, body = Home(Path(name), provider, planning="always"), Path(name, "body.json")
        finished: list[ProcessRun] = []
        bare: list[ProcessRun] = []
        for _ in range(runs):
            # Repeating the identical call would trigger stall detection.
            provider.reply(plan(1), *[command(f"true {number}") for number in range(CALLS)], DONE)
            finished.append(home.agent_run("--approval-mode", "yolo"))
            if (result := last_result(finished[-1].requests[-1])) != EMPTY_OUTPUT:
                raise BenchError(f"`true` was not run: {result}")
            body.write_text(json.dumps(finished[-1].requests[-1].body))
            bare.append(home.bare_loop(body, CALLS))
    return finished, bare


def _gaps(run: ProcessRun) -> list[float]:
    """Return the times between turns of the step; the planner's reply is not one of them."""
    turns = [request for request in run.requests if offers_tools(request)]
    return [later.received_at - reply_ended_at(earlier) for earlier, later in pairwise(turns)]


def _body_size(what: str, request: ReceivedRequest) -> BenchResult:
    tools = request.body.get("tools")
    detail = f"{request.size} bytes of JSON, {len(tools) if isinstance(tools, list) else 0} tools"
    return BenchResult(what=what, measured=request.size / KILOBYTE, limit=8, unit="kB", detail=detail)
