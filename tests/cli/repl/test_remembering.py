"""Remembering on a screen: the answer is there before it, once, and what was remembered below it."""

import json
from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import TerminalSession, ctrl
from tests.cli.terminal_user import answer, one_step, step_reply

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]
REQUEST = "from now on use tabs"
SAVES = json.dumps({"save": True, "category": "preference", "content": "Use tabs"})


def memory_decision(**more: object) -> dict[str, object]:
    return {"match": {"purpose": "memory"}, "text": SAVES, **more}


@pytest.mark.parametrize("replies", [(answer("All right, tabs."),), one_step(step_reply("s1", "All right, tabs."))])
def test_the_answer_stands_once_and_above_what_was_remembered(
    sit: Open, replies: tuple[dict[str, object], ...]
) -> None:
    seat = sit(*replies, memory_decision())
    seat.send_line(REQUEST)
    shown = seat.wait_for("[PREF] Use tabs")
    assert shown.count("All right, tabs.") == 1
    assert shown.index("All right, tabs.") < shown.index("memory added")
    seat.send(ctrl("d"))
    assert seat.wait_exit() == 0


def test_the_answer_does_not_wait_for_the_decision(sit: Open) -> None:
    seat = sit(answer("All right, tabs."), memory_decision(delay_ms=60_000), AGENT_MEMORY_TIMEOUT_S="60")
    seat.send_line(REQUEST)
    seat.wait_for("All right, tabs.")
    seat.send(ctrl("c"))
    shown = seat.wait_for("·")
    assert shown.count("All right, tabs.") == 1 and "[PREF]" not in shown
    seat.send(ctrl("d"))
    assert seat.wait_exit() == 0
