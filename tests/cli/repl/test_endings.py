"""Ctrl-C, Ctrl-D and signals at any moment: the prompt is usable or gone, and no process is left."""

import os
import signal
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.repl.terminal_session import ENTER, TerminalSession, child_processes, ctrl, wait_gone
from tests.cli.repl.test_conversation import events, reply_to, sleepers
from tests.cli.terminal_user import answer, composer_reply, one_step, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]
RESTORED = ((b"\x1b[?25h", b"\x1b[?25l"), (b"\x1b[?7h", b"\x1b[?7l"), (b"\x1b[?2004l", b"\x1b[?2004h"))
AGAIN = reply_to("and now", answer("Still here."))


def assert_usable(seat: TerminalSession, within_s: float) -> str:
    """Ask for something else; the wait is measured from now."""
    began = time.monotonic()
    seat.send("and now" + ENTER)
    shown = seat.wait_for("Still here.")
    assert time.monotonic() - began < within_s
    return shown


def result_of(seat: TerminalSession) -> list[object]:
    return [event["exit_code"] for event in events(seat) if event["type"] == "result"]


def has_event(seat: TerminalSession, kind: str) -> Callable[[], bool]:
    return lambda: any(event["type"] == kind for event in events(seat))


MOMENTS = {
    "while the plan is made": ({**plan(step("s1")), "delay_ms": 20_000},),
    "while a step thinks": one_step(step_reply("s1", "x", delay_ms=20_000)),
    "while a command runs": one_step(step_call("s1", "run_command", command="sleep 61 & sleep 60")),
    "while an approval waits": one_step(step_call("s1", "run_command", command="git push")),
    "while a question waits": (plan({"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?"}),),
    "while an answer streams": one_step(step_reply("s1", "word " * 200, chunks=200, chunk_delay_ms=100)),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_gives_a_usable_prompt_within_a_second(sit: Open, moment: str) -> None:
    seat = sit(AGAIN, *MOMENTS[moment])
    seat.send_line("begin")
    signs = {
        "while the plan is made": lambda: "planning" in seat.window_text(),
        "while a step thinks": lambda: "s1 Title of s1" in seat.window_text(),
        "while a command runs": lambda: bool(sleepers(seat)),
        "while an approval waits": lambda: "[n] no" in seat.window_text(),
        "while a question waits": lambda: "type a number" in seat.window_text(),
        "while an answer streams": lambda: "word word" in seat.window_text(),
    }
    seat.wait_until(signs[moment], moment)
    below = child_processes(seat.child.pid)
    began = time.monotonic()
    seat.send(ctrl("c"))
    seat.wait_for("exit 130")
    assert time.monotonic() - began < 2
    assert wait_gone(below, within_s=1)
    assert_usable(seat, within_s=3)
    assert result_of(seat) == [130, 0]


def test_ctrl_c_typed_blindly_at_many_moments_never_does_harm(sit: Open) -> None:
    slow = one_step(step_call("s1", "run_command", command="sleep 0.2"), step_reply("s1", "done", delay_ms=100))
    seat = sit(AGAIN, *slow)
    # From the first sign of the program, long before it is loaded, to after the run; two in a row would leave.
    seat.wait_for(">")
    for pause in (0.0, 0.1, 0.3, 0.05, 0.2):
        seat.send(ctrl("c"))
        seat.watch(pause)
        seat.send("go on" + ENTER)
        seat.watch(pause)
    seat.wait_until(lambda: len(result_of(seat)) >= 1 and seat.window_text().count("go on") >= 1, "a run")
    seat.wait_stable()
    assert_usable(seat, within_s=20)
    assert "Traceback" not in seat.full_text()
    assert set(result_of(seat)) <= {0, 130}


BROKEN_IMPORT = """
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
    seat = sit(AGAIN, program=[sys.executable, "-c", BROKEN_IMPORT.replace("{name}", name)])
    before = termios.tcgetattr(seat.child.child_fd)
    shown = seat.wait_process_end()
    assert termios.tcgetattr(seat.child.child_fd) == before
    assert seat.wait_exit() == 130
    assert "Traceback" not in shown


def test_two_quick_ctrl_c_leave_a_run_cleanly(sit: Open) -> None:
    seat = sit(*one_step(step_call("s1", "run_command", command="sleep 60")))
    seat.send_line("sleep")
    seat.wait_until(lambda: bool(sleepers(seat)), "the command to start")
    below = child_processes(seat.child.pid, with_keeper=True)
    seat.send(ctrl("c") + ctrl("c"))
    assert seat.wait_exit() == 0
    assert wait_gone(below)
    assert result_of(seat) == [130]
    assert "resume with /resume, or: agent resume" in seat.full_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_its_log_and_the_prompt(sit: Open, number: signal.Signals) -> None:
    seat = sit(*one_step(step_call("s1", "run_command", command="sleep 60")))
    before = termios.tcgetattr(seat.child.child_fd)
    seat.send_line("sleep")
    seat.wait_until(lambda: bool(sleepers(seat)), "the command to start")
    below = child_processes(seat.child.pid, with_keeper=True)
    os.kill(seat.child.pid, number)
    shown = seat.wait_process_end()
    assert termios.tcgetattr(seat.child.child_fd) == before
    assert seat.wait_exit() == 143
    assert wait_gone(below)
    assert result_of(seat) == [143]
    assert "exit 143" in shown and "resume with /resume, or: agent resume" in shown
    assert "Traceback" not in shown
    # Cursor shown, wrapping on, pastes unmarked: as a shell expects it.
    assert [seat.raw_output.rfind(on) > seat.raw_output.rfind(off) for on, off in RESTORED] == [True] * 3


def test_a_closed_terminal_ends_everything(sit: Open) -> None:
    seat = sit(*one_step(step_call("s1", "run_command", command="sleep 60")))
    seat.send_line("sleep")
    seat.wait_until(lambda: bool(sleepers(seat)), "the command to start")
    pids = [seat.child.pid, *child_processes(seat.child.pid, with_keeper=True)]
    os.close(seat.child.child_fd)
    seat.child.child_fd = -1
    seat.child.closed = True
    assert wait_gone(pids, within_s=5)
    assert result_of(seat) == [143]


def test_a_signal_ends_what_has_the_terminal(sit: Open) -> None:
    seat = sit(answer("x"))
    seat.send_line("!sleep 62")
    seat.wait_until(lambda: bool(sleepers(seat)), "the command to start")
    below = child_processes(seat.child.pid, with_keeper=True)
    os.kill(seat.child.pid, signal.SIGTERM)
    assert seat.wait_exit() == 143
    assert wait_gone(below)


def test_ctrl_c_goes_to_the_program_that_has_the_terminal_and_not_to_the_run(sit: Open) -> None:
    seat = sit(*one_step(step_reply("s1", "The run went on.", delay_ms=1500)))
    seat.send_line("begin")
    seat.wait_for("s1 Title of s1")
    seat.send_line("!sleep 63")
    seat.wait_until(lambda: bool(sleepers(seat)), "the command to start")
    seat.send(ctrl("c"))
    seat.wait_for("exit -2; your next request")
    seat.wait_for("1 ok")
    assert result_of(seat) == [0]


GRAB = (
    'exec 2>/dev/null; for f in /dev/tty /dev/console; do echo GRAB"BED" > $f; done; '
    "stty -echo < /dev/tty; read -t 1 x < /dev/tty; echo grabbed:$x; tty; echo done"
)


@pytest.mark.parametrize("backend", ["sandbox", "host"])
def test_a_command_that_reaches_for_the_terminal_does_not_get_it(sit: Open, backend: str) -> None:
    seat = sit(
        *one_step(step_call("s1", "run_command", command=GRAB), step_reply("s1", "That was it.", delay_ms=300)),
        AGENT_BACKEND=backend,
        AGENT_APPROVAL_MODE="yolo",
    )
    seat.send_line("grab")
    seat.wait_for("s1 Title of s1")
    seat.send("typed meanwhile")
    seat.wait_for("That was it.")
    seat.wait_for("> typed meanwhile")
    assert "GRABBED" not in seat.raw_output.decode()
    output = next(str(event["output"]) for event in events(seat) if event["type"] == "tool.completed")
    assert "not a tty" in output and "grabbed:\n" in output, output


def test_ctrl_d_during_a_run_leaves_only_from_an_empty_prompt(sit: Open) -> None:
    seat = sit(
        plan(step("a"), step("b", "a")),
        step_reply("a", "a", delay_ms=600),
        step_reply("b", "b"),
        composer_reply("All of it."),
        AGAIN,
    )
    seat.send_line("go")
    seat.wait_for("a Title of a")
    seat.send("draft" + ctrl("d"))
    seat.wait_for("All of it.")
    assert seat.window_text().splitlines()[-2] == "> draft"
    seat.send(ctrl("c") + ctrl("d"))
    assert seat.wait_exit() == 0


def test_what_was_typed_while_a_run_ended_is_still_there(sit: Open) -> None:
    seat = sit(*one_step(step_reply("s1", "Done now.", delay_ms=500)))
    seat.send_line("go")
    seat.wait_for("s1 Title of s1")
    seat.send("the next thought")
    seat.wait_for("Done now.")
    assert "> the next thought" in seat.pause()


def test_a_file_is_left_as_the_log_says_after_kill_9(sit: Open) -> None:
    seat = sit(
        *one_step(
            step_call("s1", "write_file", path="kept.txt", content="kept"),
            step_call("s1", "run_command", command="sleep 60"),
        ),
        AGENT_APPROVAL_MODE="yolo",
    )
    seat.send_line("write")
    seat.wait_for("s1 write_file kept.txt")
    seat.wait_until(lambda: bool(sleepers(seat)), "the command to start")
    below = child_processes(seat.child.pid, with_keeper=True)
    os.kill(seat.child.pid, signal.SIGKILL)
    seat.wait_exit()
    assert (seat.folder / "kept.txt").read_text() == "kept"
    assert [event["status"] for event in events(seat) if event["type"] == "tool.completed"] == ["ok"]
    assert wait_gone(below, within_s=5), [Path(f"/proc/{pid}/cmdline").read_text() for pid in below]
