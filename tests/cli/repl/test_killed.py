"""kill -9 at any moment: everything shown as finished is in the log and is not repeated on resume."""

import os
import random
import re
import signal
from collections import Counter
from collections.abc import Set

import pytest

from tests.cli.repl.terminal_session import OpenTerminal, TerminalSession, child_processes, wait_gone
from tests.cli.repl.test_conversation import events
from tests.cli.terminal_user import User, composer_reply, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
NAMES = [f"s{number}" for number in range(6)]


def script(known: Set[str] = frozenset()) -> list[dict[str, object]]:
    """Six steps, two at a time; each runs a command unless its result is known, writes a file and answers."""
    replies = [plan(*(step(name, *([NAMES[at - 2]] if at > 1 else [])) for at, name in enumerate(NAMES)))]
    for name in NAMES:
        command = step_call(name, "run_command", command=f"echo {name} >> done.txt; sleep 0.1")
        replies += [
            *([] if name in known else [command]),
            step_call(name, "write_file", path=f"{name}.txt", content=f"by {name}\n"),
            step_reply(name, f"{name} is done.", delay_ms=50),
        ]
    # Long enough that the run never ends before the kill.
    return [*replies, {**composer_reply("All six are done."), "delay_ms": 1500}]


def shown_as_finished(screen: str) -> dict[str, set[str]]:
    return {
        "steps": set(re.findall(r"(?m)^✓ (s\d) ", screen)),
        "commands": set(re.findall(r"(?m)^  (s\d) \$ ", screen)),
        "files": set(re.findall(r"(?m)^  (s\d) write_file ", screen)),
    }


def logged(terminal: TerminalSession, kind: str, name: str = "") -> set[str]:
    return {
        str(event["step_id"])
        for event in events(terminal)
        if event["type"] == kind and (not name or event.get("name") == name)
    }


@pytest.mark.parametrize("part", range(2))
def test_kill_9_at_a_random_moment_loses_nothing_shown_as_finished(
    open_terminal: OpenTerminal, user: User, part: int
) -> None:
    after_s = random.uniform(part * 0.7, part * 0.7 + 0.7)
    terminal = open_terminal(*script(), rows=60, AGENT_APPROVAL_MODE="auto-edit", AGENT_CONCURRENCY="2")
    terminal.send_line("do all six")
    terminal.wait_for("● s0")
    terminal.watch(after_s)
    children = child_processes(terminal.child.pid, with_own=True)
    os.kill(terminal.child.pid, signal.SIGKILL)
    terminal.wait_exit()
    assert wait_gone(children)
    shown = shown_as_finished(terminal.full_text())
    assert shown["steps"] <= logged(terminal, "step.completed"), after_s
    assert shown["commands"] <= logged(terminal, "tool.completed", "run_command"), after_s
    assert shown["files"] <= logged(terminal, "files"), after_s
    assert all((terminal.folder / f"{name}.txt").read_text() == f"by {name}\n" for name in shown["files"])
    session = str(events(terminal)[0]["session_id"])
    page = user.agent("sessions", "show", session)
    assert page.exit_code == 0 and "do all six" in page.stdout
    # The script starts over; a model would read the results of its commands.
    user.script(*script(known=logged(terminal, "tool.completed", "run_command")))
    resumed = user.agent("resume", AGENT_APPROVAL_MODE="auto-edit")
    assert (resumed.exit_code, "All six are done." in resumed.stdout) == (0, True), resumed.stderr
    done = Counter((terminal.folder / "done.txt").read_text().split())
    assert set(done) == set(NAMES)
    assert all(done[name] == 1 for name in shown["commands"]), (after_s, done, shown)
