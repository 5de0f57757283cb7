"""A long session: all finished lines are in the scrollback, in order and once; memory use stays flat."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from tests.cli.repl.long_session import APPROVALS, CALLS, RUNS, STEPS, events_of
from tests.cli.repl.terminal_session import TerminalSession
from tests.cli.terminal_user import User

pytestmark = pytest.mark.slow
LINE = re.compile(r"^(?:• )?(> request \d+|r\d+s\d+ \$ make (r\d+s\d+c\d+)|✓ r\d+s\d+|The end of run \d+\.)")


@pytest.fixture
def terminal(user: User) -> Iterator[TerminalSession]:
    program = [sys.executable, "-m", "tests.cli.repl.long_session"]
    terminal = TerminalSession(user, program=program, model="script:none", columns=100, rows=30)
    yield terminal
    terminal.close()


def test_half_an_hour_of_runs_is_displayed_completely_without_growing_memory(terminal: TerminalSession) -> None:
    assert sum(1 for run in range(RUNS) for _ in events_of(run)) + APPROVALS >= 2000
    memory: list[float] = []
    for number in range(APPROVALS):
        asked = f"make r{number // STEPS}s{number % STEPS}c{CALLS // 2}"
        terminal.wait_until(lambda asked=asked: f"allow this?  {asked}" in terminal.window_text(), asked)
        terminal.wait_until(lambda: "[y] once" in terminal.window_text(), "the keys")
        terminal.watch(0.01)
        terminal.send("y")
        memory.append(resident_mb(terminal.child.pid))
    assert terminal.wait_exit() == 0
    shown = [match[1] for line in terminal.full_text().splitlines() if (match := LINE.match(line))]
    for run in range(RUNS):
        start, end = shown.index(f"> request {run}"), shown.index(f"The end of run {run}.")
        steps = [f"r{run}s{step}" for step in range(STEPS)]
        assert shown[start + 1 : end] == [
            *(f"{step} $ make {step}c{call}" for call in range(CALLS) for step in steps),
            *(f"✓ {step}" for step in steps),
        ]
    assert len(shown) == RUNS * (2 + STEPS * (CALLS + 1))
    assert terminal.full_text().count("allow this?") == APPROVALS
    assert not re.search(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]|\d/\d steps", terminal.full_text())
    assert median(memory[-8:]) - median(memory[8:16]) < 2, memory


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1000
