"""Bisection finds the first bad point with few trials."""

import asyncio
import math

from hypothesis import given
from hypothesis import strategies as st

from agent.diagnostics.bisect import Bisection, Trial, bisect
from agent.sessions.checkpoints.points import Point
from tooling.contract.result import CallStatus


def search(count: int, codes: dict[int, int], default: int = 0, status: CallStatus = "ok") -> Bisection:
    points = [Point(seq=number, step_id=f"s{number}", title="") for number in range(1, count + 1)]

    async def attempt(number: int) -> Trial:
        code = codes.get(number, default)
        return Trial(number=number, after="", status=status if not code else "error", exit_code=code, output="")

    return asyncio.run(bisect(points, attempt))


@given(st.integers(1, 200), st.data())
def test_the_first_bad_point_is_found_in_a_logarithm_of_trials(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, count))
    outcome = search(count, dict.fromkeys(range(first, count + 1), 1))
    assert outcome.verdict == "found"
    assert outcome.culprit is not None
    assert outcome.culprit.step_id == f"s{first}"
    assert len(outcome.trials) <= 2 + math.ceil(math.log2(count))


def test_a_search_without_a_bad_step_says_why() -> None:
    assert search(3, {}, default=1).verdict == "fails_before"
    assert search(3, {}).verdict == "passes_after"
    assert search(3, {}, default=127).verdict == "cannot_run"
    assert search(3, {3: 1, 2: 126, 1: 126}).verdict == "cannot_run"
    assert search(3, {}, status="denied").verdict == "refused"
