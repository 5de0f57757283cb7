"""Measure random graphs against a bare client, and how early the first step of a streamed plan starts."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import median

from bench.measure import BenchResult, format_ms
from bench.program import BenchError, Home, ProcessRun, reply_ended_at
from bench.replies import DONE, offers_tools
from tests.provider.replies import Pace, Text
from tests.provider.threaded import ThreadedProvider

STEPS = 50
LATENCY_S = 0.2
GRAPHS = 5
LIMIT = 1.1
BETWEEN_FRAGMENTS_S = 0.02
EARLY_STEPS = 8
EARLY_ROUNDS = 5
EARLY_LIMIT = 0.5

_Steps = Sequence[Mapping[str, object]]


def random_graphs() -> list[BenchResult]:
    """Measure random graphs from first request to last byte, against a bare client on the same graphs."""
    ratios: list[float] = []
    ideal: list[float] = []
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(pace=Pace(head_s=LATENCY_S)) as provider:
        walk = _Walk(folder=Path(name), provider=provider)
        # The first one is a warm-up.
        for seed in range(GRAPHS + 1):
            steps = random_steps(seed)
            ours, baseline = walk.ours(steps), walk.baseline(steps)
            if seed:
                ratios.append(ours / baseline)
                ideal.append(ours / ((longest_chain(steps) + 2) * LATENCY_S))
    detail = (
        f"median of {GRAPHS} graphs, worst {max(ratios):.2f}, against bare Python + httpx on the same graph; "
        f"against the latencies of {format_ms(LATENCY_S)} alone {median(ideal):.2f}"
    )
    what = f"random graphs of {STEPS} steps against their critical path"
    return [BenchResult(what=what, measured=median(ratios), limit=LIMIT, unit="×", detail=detail)]


class _Walk:
    """Runs the same graph with the agent and with a bare client, timed from first request to last byte."""

    def __init__(self, *, folder: Path, provider: ThreadedProvider) -> None:
        self._provider = provider
        self._home = Home(folder, provider, planning="always")
        self._body, self._graph = folder / "body.json", folder / "graph.json"

    def ours(self, steps: _Steps) -> float:
        self._provider.reply(Text(json.dumps({"steps": steps})), *[DONE] * (STEPS + 1))
        run = self._home.agent_run()
        self._body.write_text(json.dumps(next(request.body for request in run.requests if offers_tools(request))))
        return self._span(run)

    def baseline(self, steps: _Steps) -> float:
        self._provider.reply(*[DONE] * (STEPS + 2))
        self._graph.write_text(json.dumps({step["id"]: step["depends_on"] for step in steps}))
        return self._span(self._home.bare_graph(self._body, self._graph))

    def _span(self, run: ProcessRun) -> float:
        if len(run.requests) != STEPS + 2:
            raise BenchError(f"{STEPS} steps took {len(run.requests)} requests instead of {STEPS + 2}")
        return max(reply_ended_at(request) for request in run.requests) - run.requests[0].received_at


def streamed_plan() -> list[BenchResult]:
    """Measure how much of a plan has arrived when its first step sends a request."""
    shares: list[float] = []
    steps = [_step(number, ()) for number in range(EARLY_STEPS)]
    slow = Text(json.dumps({"steps": steps}), pace=Pace(between_s=BETWEEN_FRAGMENTS_S))
    with tempfile.TemporaryDirectory() as name, ThreadedProvider() as provider:
        home = Home(Path(name), provider, planning="always")
        for number in range(EARLY_ROUNDS + 1):
            provider.reply(slow, *[DONE] * (EARLY_STEPS + 1))
            share = _share(home.agent_run())
            if number:
                shares.append(share)
    detail = (
        f"a plan of {EARLY_STEPS} steps in fragments {format_ms(BETWEEN_FRAGMENTS_S)} apart, median of {EARLY_ROUNDS}"
    )
    what = "share of the plan that has arrived at the first request of a step"
    return [BenchResult(what=what, measured=median(shares), limit=EARLY_LIMIT, unit="×", detail=detail)]


def _share(run: ProcessRun) -> float:
    planner = run.requests[0]
    first = min(request.received_at for request in run.requests if offers_tools(request))
    return (first - planner.received_at) / (reply_ended_at(planner) - planner.received_at)


def random_steps(seed: int) -> _Steps:
    """Return a graph in which each step depends on up to three of the ten before it."""
    random = Random(seed)
    steps = []
    for number in range(STEPS):
        nearby = range(max(0, number - 10), number)
        steps.append(_step(number, random.sample(nearby, min(len(nearby), random.choice((0, 1, 1, 2, 3))))))
    return steps


def longest_chain(steps: _Steps) -> int:
    """Return the number of steps on the critical path if all take the same time."""
    length: dict[str, int] = {}
    for step in steps:
        dependencies = step["depends_on"]
        assert isinstance(dependencies, list)
        length[str(step["id"])] = 1 + max((length[dep] for dep in dependencies), default=0)
    return max(length.values())


def _step(number: int, dependencies: Sequence[int]) -> Mapping[str, object]:
    names = [f"s{dep}" for dep in sorted(dependencies)]
    return {"id": f"s{number}", "title": f"Step {number}", "instruction": f"Do part {number}", "depends_on": names}
