"""Graphs as planners make them: how close they come to their critical path, and how early their first step starts."""

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
    """Measure first request to last byte of random graphs against a bare client that walks the same graphs."""
    ratios: list[float] = []
    ideal: list[float] = []
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(pace=Pace(head_s=LATENCY_S)) as provider:
        walk = _Walk(folder=Path(name), provider=provider)
        # The first only warms the caches.
        for seed in range(GRAPHS + 1):
            steps = random_steps(seed)
            ours, floor = walk.ours(steps), walk.floor(steps)
            if seed:
                ratios.append(ours / floor)
                ideal.append(ours / ((longest_chain(steps) + 2) * LATENCY_S))
    detail = (
        f"median of {GRAPHS} graphs, worst {max(ratios):.2f}, against bare Python + httpx on the same graph; "
        f"against the latencies of {format_ms(LATENCY_S)} alone {median(ideal):.2f}"
    )
    what = f"random graphs of {STEPS} steps against their critical path"
    return [BenchResult(what=what, measured=median(ratios), limit=LIMIT, unit="×", detail=detail)]


class _Walk:
    """The same graph, walked by us and by a bare client; times are first request to last byte."""

    def __init__(self, *, folder: Path, provider: ThreadedProvider) -> None:
        self._provider = provider
        self._home = Home(folder, provider)
        self._body, self._graph = folder / "body.json", folder / "graph.json"

    def ours(self, steps: _Steps) -> float:
        self._provider.reply(Text(json.dumps({"steps": steps})), *[DONE] * (STEPS + 1))
        ended = self._home.agent_run()
        self._body.write_text(json.dumps(next(one.body for one in ended.requests if offers_tools(one))))
        return self._span(ended)

    def floor(self, steps: _Steps) -> float:
        self._provider.reply(*[DONE] * (STEPS + 2))
        self._graph.write_text(json.dumps({step["id"]: step["depends_on"] for step in steps}))
        return self._span(self._home.bare_graph(self._body, self._graph))

    def _span(self, ended: ProcessRun) -> float:
        if len(ended.requests) != STEPS + 2:
            raise BenchError(f"{STEPS} steps took {len(ended.requests)} requests instead of {STEPS + 2}")
        return max(reply_ended_at(request) for request in ended.requests) - ended.requests[0].received_at


def streamed_plan() -> list[BenchResult]:
    """Measure how much of a plan has arrived when its first step asks the model."""
    shares: list[float] = []
    steps = [_step(number, ()) for number in range(EARLY_STEPS)]
    slow = Text(json.dumps({"steps": steps}), pace=Pace(between_s=BETWEEN_FRAGMENTS_S))
    with tempfile.TemporaryDirectory() as name, ThreadedProvider() as provider:
        home = Home(Path(name), provider)
        for number in range(EARLY_ROUNDS + 1):
            provider.reply(slow, *[DONE] * (EARLY_STEPS + 1))
            share = _share(home.agent_run())
            if number:
                shares.append(share)
    detail = (
        f"a plan of {EARLY_STEPS} steps in fragments {format_ms(BETWEEN_FRAGMENTS_S)} apart, median of {EARLY_ROUNDS}"
    )
    what = "part of the plan that has arrived when the first step asks"
    return [BenchResult(what=what, measured=median(shares), limit=EARLY_LIMIT, unit="×", detail=detail)]


def _share(ended: ProcessRun) -> float:
    planner = ended.requests[0]
    first = min(request.received_at for request in ended.requests if offers_tools(request))
    return (first - planner.received_at) / (reply_ended_at(planner) - planner.received_at)


def random_steps(seed: int) -> _Steps:
    """Return a graph in which each step needs up to three of the ten before it."""
    chance = Random(seed)
    steps = []
    for number in range(STEPS):
        nearby = range(max(0, number - 10), number)
        steps.append(_step(number, chance.sample(nearby, min(len(nearby), chance.choice((0, 1, 1, 2, 3))))))
    return steps


def longest_chain(steps: _Steps) -> int:
    """Return the number of steps on the critical path when all take the same time."""
    length: dict[str, int] = {}
    for step in steps:
        needed = step["depends_on"]
        assert isinstance(needed, list)
        length[str(step["id"])] = 1 + max((length[dep] for dep in needed), default=0)
    return max(length.values())


def _step(number: int, needed: Sequence[int]) -> Mapping[str, object]:
    names = [f"s{dep}" for dep in sorted(needed)]
    return {"id": f"s{number}", "title": f"Step {number}", "instruction": f"Do part {number}", "depends_on": names}
