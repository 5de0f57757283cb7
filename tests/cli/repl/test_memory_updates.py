"""Memory updates on the screen: below the answer, which does not wait for them."""

import json

import pytest

from tests.cli.repl.terminal_session import OpenTerminal, ctrl
from tests.cli.terminal_user import answer, one_step, step_reply

pytestmark = pytest.mark.slow
REQUEST = "from now on use tabs"
SAVES = json.dumps({"save": True, "category": "preference", "content": "Use tabs"})


def memory_decision(**more: object) -> dict[str, object]:
    return {"match": {"purpose": "memory"}, "text": SAVES, **more}


@pytest.mark.parametrize("replies", [(answer("All right, tabs."),), one_step(step_reply("s1", "All right, tabs."))])
def test_the_answer_is_printed_once_and_above_the_memory_update(
    open_terminal: OpenTerminal, replies: tuple[dict[str, object], ...]
) -> None:
    terminal = open_terminal(*replies, memory_decision())
    terminal.send_line(REQUEST)
    shown = terminal.wait_for("[PREF] Use tabs")
    assert shown.count("All right, tabs.") == 1
    assert shown.index("All right, tabs.") < shown.index("[PREF] Use tabs")
    terminal.send(ctrl("d"))
    assert terminal.wait_exit() == 0


def test_the_answer_does_not_wait_for_the_memory_decision(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("All right, tabs."), memory_decision(delay_ms=60_000), AGENT_MEMORY_TIMEOUT_S="60")
    terminal.send_line(REQUEST)
    terminal.wait_for("All right, tabs.")
    terminal.send(ctrl("c"))
    shown = terminal.wait_for("·")
    assert shown.count("All right, tabs.") == 1 and "[PREF]" not in shown
    terminal.send(ctrl("d"))
    assert terminal.wait_exit() == 0
