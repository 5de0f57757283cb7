"""Ctrl-C, Ctrl-D and signals at any moment: the prompt is usable or gone, and no process is left."""

import os
import signal
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.repl.terminal_session import ENTER, Seat, all_gone, ctrl, processes_below
from tests.cli.repl.test_conversation import events, sleepers, to
from tests.cli.terminal_user import answer, calls, composes, one_step, plan, says, step

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]
RESTORED = ((b"\x1b[?25h", b"\x1b[?25l"), (b"\x1b[?7h", b"\x1b[?7l"), (b"\x1b[?2004l", b"\x1b[?2004h"))
AGAIN = to("and now", answer("Still here."))


def is_usable(seat: Seat, within_s: float) -> str:
    """Ask for something else; the wait is measured from now."""
    began = time.monotonic()
    seat.types("and now" + ENTER)
    shown = seat.sees("Still here.")
    assert time.monotonic() - began < within_s
    return shown


def result_of(seat: Seat) -> list[object]:
    return [event["exit_code"] for event in events(seat) if event["type"] == "result"]


def has_begun(seat: Seat, kind: str) -> Callable[[], bool]:
    return lambda: any(event["type"] == kind for event in events(seat))


MOMENTS = {
    "while the plan is made": ({**plan(step("s1")), "delay_ms": 20_000},),
    "while a step thinks": one_step(says("s1", "x", delay_ms=20_000)),
    "while a command runs": one_step(calls("s1", "run_command", command="sleep 61 & sleep 60")),
    "while an approval waits": one_step(calls("s1", "run_command", command="git push")),
    "while a question waits": (plan({"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?"}),),
    "while an answer streams": one_step(says("s1", "word " * 200, chunks=200, chunk_delay_ms=100)),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_gives_a_usable_prompt_within_a_second(sit: Open, moment: str) -> None:
    seat = sit(AGAIN, *MOMENTS[moment])
    seat.says("begin")
    signs = {
        "while the plan is made": lambda: "planning" in seat.window(),
        "while a step thinks": lambda: "s1 Title of s1" in seat.window(),
        "while a command runs": lambda: bool(sleepers(seat)),
        "while an approval waits": lambda: "[n] no" in seat.window(),
        "while a question waits": lambda: "type a number" in seat.window(),
        "while an answer streams": lambda: "word word" in seat.window(),
    }
    seat.until(signs[moment], moment)
    below = processes_below(seat.child.pid)
    began = time.monotonic()
    seat.types(ctrl("c"))
    seat.sees("exit 130")
    assert time.monotonic() - began < 2
    assert all_gone(below, within_s=1)
    is_usable(seat, within_s=3)
    assert result_of(seat) == [130, 0]


def test_ctrl_c_typed_blindly_at_many_moments_never_does_harm(sit: Open) -> None:
    slow = one_step(calls("s1", "run_command", command="sleep 0.2"), says("s1", "done", delay_ms=100))
    seat = sit(AGAIN, *slow)
    # From the first sign of the program, long before it is loaded, to after the run; two in a row would leave.
    seat.sees(">")
    for pause in (0.0, 0.1, 0.3, 0.05, 0.2):
        seat.types(ctrl("c"))
        seat.watches(pause)
        seat.types("go on" + ENTER)
        seat.watches(pause)
    seat.until(lambda: len(result_of(seat)) >= 1 and seat.window().count("go on") >= 1, "a run")
    seat.settled()
    is_usable(seat, within_s=20)
    assert "Traceback" not in seat.all()
    assert set(result_of(seat)) <= {0, 130}


STRICKEN = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "{name}":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from cli.main import main
main()
"""


@pytest.mark.parametrize("name", ["cli.run.early_prompt", "cli.application", "cli.repl.start"])
def test_ctrl_c_while_the_program_loads_ends_it_without_a_traceback(sit: Open, name: str) -> None:
    seat = sit(AGAIN, program=[sys.executable, "-c", STRICKEN.replace("{name}", name)])
    before = termios.tcgetattr(seat.child.child_fd)
    shown = seat.until_gone()
    assert termios.tcgetattr(seat.child.child_fd) == before
    assert seat.ends() == 130
    assert "Traceback" not in shown


def test_two_quick_ctrl_c_leave_a_run_cleanly(sit: Open) -> None:
    seat = sit(*one_step(calls("s1", "run_command", command="sleep 60")))
    seat.says("sleep")
    seat.until(lambda: bool(sleepers(seat)), "the command to start")
    below = processes_below(seat.child.pid, with_keeper=True)
    seat.types(ctrl("c") + ctrl("c"))
    assert seat.ends() == 0
    assert all_gone(below)
    assert result_of(seat) == [130]
    assert "go on with: agent resume" in seat.all()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_its_log_and_the_prompt(sit: Open, number: signal.Signals) -> None:
    seat = sit(*one_step(calls("s1", "run_command", command="sleep 60")))
    before = termios.tcgetattr(seat.child.child_fd)
    seat.says("sleep")
    seat.until(lambda: bool(sleepers(seat)), "the command to start")
    below = processes_below(seat.child.pid, with_keeper=True)
    os.kill(seat.child.pid, number)
    shown = seat.until_gone()
    assert termios.tcgetattr(seat.child.child_fd) == before
    assert seat.ends() == 143
    assert all_gone(below)
    assert result_of(seat) == [143]
    assert "exit 143" in shown and "go on with: agent resume" in shown
    assert "Traceback" not in shown
    # Cursor shown, wrapping on, pastes unmarked: as a shell expects it.
    assert [seat.bytes_seen.rfind(on) > seat.bytes_seen.rfind(off) for on, off in RESTORED] == [True] * 3


def test_a_closed_terminal_ends_everything(sit: Open) -> None:
    seat = sit(*one_step(calls("s1", "run_command", command="sleep 60")))
    seat.says("sleep")
    seat.until(lambda: bool(sleepers(seat)), "the command to start")
    pids = [seat.child.pid, *processes_below(seat.child.pid, with_keeper=True)]
    os.close(seat.child.child_fd)
    seat.child.child_fd = -1
    seat.child.closed = True
    assert all_gone(pids, within_s=5)
    assert result_of(seat) == [143]


def test_a_signal_ends_what_has_the_terminal(sit: Open) -> None:
    seat = sit(answer("x"))
    seat.says("!sleep 62")
    seat.until(lambda: bool(sleepers(seat)), "the command to start")
    below = processes_below(seat.child.pid, with_keeper=True)
    os.kill(seat.child.pid, signal.SIGTERM)
    assert seat.ends() == 143
    assert all_gone(below)


def test_ctrl_c_goes_to_the_program_that_has_the_terminal_and_not_to_the_run(sit: Open) -> None:
    seat = sit(*one_step(says("s1", "The run went on.", delay_ms=1500)))
    seat.says("begin")
    seat.sees("s1 Title of s1")
    seat.says("!sleep 63")
    seat.until(lambda: bool(sleepers(seat)), "the command to start")
    seat.types(ctrl("c"))
    seat.sees("exit -2; your next request")
    seat.sees("1 ok")
    assert result_of(seat) == [0]


GRAB = (
    'exec 2>/dev/null; for f in /dev/tty /dev/console; do echo GRAB"BED" > $f; done; '
    "stty -echo < /dev/tty; read -t 1 x < /dev/tty; echo grabbed:$x; tty; echo done"
)


@pytest.mark.parametrize("backend", ["sandbox", "host"])
def test_a_command_that_reaches_for_the_terminal_does_not_get_it(sit: Open, backend: str) -> None:
    seat = sit(
        *one_step(calls("s1", "run_command", command=GRAB), says("s1", "That was it.", delay_ms=300)),
        AGENT_BACKEND=backend,
        AGENT_APPROVAL_MODE="yolo",
    )
    seat.says("grab")
    seat.sees("s1 Title of s1")
    seat.types("typed meanwhile")
    seat.sees("That was it.")
    seat.sees("> typed meanwhile")
    assert "GRABBED" not in seat.bytes_seen.decode()
    output = next(str(event["output"]) for event in events(seat) if event["type"] == "tool.completed")
    assert "not a tty" in output and "grabbed:\n" in output, output


def test_ctrl_d_during_a_run_leaves_only_from_an_empty_prompt(sit: Open) -> None:
    seat = sit(
        plan(step("a"), step("b", "a")), says("a", "a", delay_ms=600), says("b", "b"), composes("All of it."), AGAIN
    )
    seat.says("go")
    seat.sees("a Title of a")
    seat.types("draft" + ctrl("d"))
    seat.sees("All of it.")
    assert seat.window().splitlines()[-2] == "> draft"
    seat.types(ctrl("c") + ctrl("d"))
    assert seat.ends() == 0


def test_what_was_typed_while_a_run_ended_is_still_there(sit: Open) -> None:
    seat = sit(*one_step(says("s1", "Done now.", delay_ms=500)))
    seat.says("go")
    seat.sees("s1 Title of s1")
    seat.types("the next thought")
    seat.sees("Done now.")
    assert "> the next thought" in seat.settles()


def test_a_file_is_left_as_the_log_says_after_kill_9(sit: Open) -> None:
    seat = sit(
        *one_step(
            calls("s1", "write_file", path="kept.txt", content="kept"),
            calls("s1", "run_command", command="sleep 60"),
        ),
        AGENT_APPROVAL_MODE="yolo",
    )
    seat.says("write")
    seat.sees("s1 write_file kept.txt")
    seat.until(lambda: bool(sleepers(seat)), "the command to start")
    below = processes_below(seat.child.pid, with_keeper=True)
    os.kill(seat.child.pid, signal.SIGKILL)
    seat.ends()
    assert (seat.folder / "kept.txt").read_text() == "kept"
    assert [event["status"] for event in events(seat) if event["type"] == "tool.completed"] == ["ok"]
    assert all_gone(below, within_s=5), [Path(f"/proc/{pid}/cmdline").read_text() for pid in below]
