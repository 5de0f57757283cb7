"""kill -9 at any moment: all that was on the screen as finished is in the session, and is not done again."""

import os
import random
import re
import signal
from collections import Counter
from collections.abc import Callable, Set

import pytest

from tests.cli.repl.terminal_session import TerminalSession, child_processes, wait_gone
from tests.cli.repl.test_conversation import events
from tests.cli.terminal_user import User, composer_reply, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]
NAMES = [f"s{number}" for number in range(6)]


def script(known: Set[str] = frozenset()) -> list[dict[str, object]]:
    """Six steps, two at a time, each with a command, unless its result is known, a file and an answer."""
    replies = [plan(*(step(name, *([NAMES[at - 2]] if at > 1 else [])) for at, name in enumerate(NAMES)))]
    for name in NAMES:
        command = step_call(name, "run_command", command=f"echo {name} >> done.txt; sleep 0.1")
        replies += [
            *([] if name in known else [command]),
            step_call(name, "write_file", path=f"{name}.txt", content=f"by {name}\n"),
            step_reply(name, f"{name} is done.", delay_ms=50),
        ]
    # Nobody is killed too late, not even by the slowest of hands.
    return [*replies, {**composer_reply("All six are done."), "delay_ms": 1500}]


def shown_as_finished(screen: str) -> dict[str, set[str]]:
    return {
        "steps": set(re.findall(r"(?m)^✓ (s\d) ", screen)),
        "commands": set(re.findall(r"(?m)^  (s\d) \$ ", screen)),
        "files": set(re.findall(r"(?m)^  (s\d) write_file ", screen)),
    }


def logged(seat: TerminalSession, kind: str, name: str = "") -> set[str]:
    return {
        str(event["step_id"])
        for event in events(seat)
        if event["type"] == kind and (not name or event.get("name") == name)
    }


@pytest.mark.parametrize("part", range(2))
def test_kill_9_at_a_random_moment_loses_nothing_that_stood_there_as_finished(sit: Open, user: User, part: int) -> None:
    after_s = random.uniform(part * 0.7, part * 0.7 + 0.7)
    seat = sit(*script(), rows=60, AGENT_APPROVAL_MODE="auto-edit", AGENT_CONCURRENCY="2")
    seat.send_line("do all six")
    seat.wait_for("● s0")
    seat.watch(after_s)
    below = child_processes(seat.child.pid, with_keeper=True)
    os.kill(seat.child.pid, signal.SIGKILL)
    seat.wait_exit()
    assert wait_gone(below, within_s=5)
    shown = shown_as_finished(seat.full_text())
    assert shown["steps"] <= logged(seat, "step.completed"), after_s
    assert shown["commands"] <= logged(seat, "tool.completed", "run_command"), after_s
    assert shown["files"] <= logged(seat, "files"), after_s
    assert all((seat.folder / f"{name}.txt").read_text() == f"by {name}\n" for name in shown["files"])
    session = str(events(seat)[0]["session_id"])
    told = user.agent("sessions", "show", session)
    assert told.exit_code == 0 and "do all six" in told.stdout
    # A script begins anew; a model would have read what its commands did.
    user.script(*script(known=logged(seat, "tool.completed", "run_command")))
    resumed = user.agent("resume", AGENT_APPROVAL_MODE="auto-edit")
    assert (resumed.exit_code, "All six are done." in resumed.stdout) == (0, True), resumed.stderr
    done = Counter((seat.folder / "done.txt").read_text().split())
    assert set(done) == set(NAMES)
    assert all(done[name] == 1 for name in shown["commands"]), (after_s, done, shown)
