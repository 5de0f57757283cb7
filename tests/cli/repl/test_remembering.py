"""Remembering on a screen: the answer is there before it, once, and what was remembered below it."""

import json
from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import Seat, ctrl
from tests.cli.terminal_user import answer, one_step, says

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]
WISH = "from now on use tabs"
SAVES = json.dumps({"save": True, "category": "preference", "content": "Use tabs"})


def decides(**more: object) -> dict[str, object]:
    return {"match": {"purpose": "memory"}, "text": SAVES, **more}


@pytest.mark.parametrize("replies", [(answer("All right, tabs."),), one_step(says("s1", "All right, tabs."))])
def test_the_answer_stands_once_and_above_what_was_remembered(
    sit: Open, replies: tuple[dict[str, object], ...]
) -> None:
    seat = sit(*replies, decides())
    seat.says(WISH)
    shown = seat.sees("[PREF] Use tabs")
    assert shown.count("All right, tabs.") == 1
    assert shown.index("All right, tabs.") < shown.index("memory added")
    seat.types(ctrl("d"))
    assert seat.ends() == 0


def test_the_answer_does_not_wait_for_the_decision(sit: Open) -> None:
    seat = sit(answer("All right, tabs."), decides(delay_ms=60_000), AGENT_MEMORY_TIMEOUT_S="60")
    seat.says(WISH)
    seat.sees("All right, tabs.")
    seat.types(ctrl("c"))
    shown = seat.sees("·")
    assert shown.count("All right, tabs.") == 1 and "[PREF]" not in shown
    seat.types(ctrl("d"))
    assert seat.ends() == 0
