"""Ctrl-C, Ctrl-D and signals at any moment: the prompt is usable or closed, and no process is left."""

import os
import signal
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.repl.repl import SHELL_OUTPUT_NOTE
from cli.repl.ui.approval_cards import DENY_HINT, QUESTION_HINT
from tests.cli.repl.terminal_session import ENTER, OpenTerminal, TerminalSession, child_processes, ctrl, wait_gone
from tests.cli.repl.test_conversation import events, reply_to, sleepers
from tests.cli.terminal_user import answer, composer_reply, one_step, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
RESTORED = ((b"\x1b[?25h", b"\x1b[?25l"), (b"\x1b[?7h", b"\x1b[?7l"), (b"\x1b[?2004l", b"\x1b[?2004h"))
AGAIN = reply_to("and now", answer("Still here."))


def assert_usable(terminal: TerminalSession) -> str:
    """Send another request and wait for its answer."""
    terminal.send("and now" + ENTER)
    return terminal.wait_for("Still here.")


def result_of(terminal: TerminalSession) -> list[object]:
    return [event["exit_code"] for event in events(terminal) if event["type"] == "result"]


def has_event(terminal: TerminalSession, kind: str) -> Callable[[], bool]:
    return lambda: any(event["type"] == kind for event in events(terminal))


MOMENTS = {
    "while planning": ({**plan(step("s1")), "delay_ms": 60_000},),
    "while a step thinks": one_step(step_reply("s1", "x", delay_ms=60_000)),
    "while a command runs": one_step(step_call("s1", "run_command", command="sleep 61 & sleep 60")),
    "while an approval waits": one_step(step_call("s1", "run_command", command="git push")),
    "while a question waits": (plan({"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?"}),),
    "while an answer streams": one_step(step_reply("s1", "word " * 200, chunks=200, chunk_delay_ms=100)),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_returns_to_a_usable_prompt(open_terminal: OpenTerminal, moment: str) -> None:
    terminal = open_terminal(AGAIN, *MOMENTS[moment])
    terminal.send_line("start")
    checks = {
        "while planning": lambda: "planning" in terminal.window_text(),
        "while a step thinks": lambda: "s1 Title of s1" in terminal.window_text(),
        "while a command runs": lambda: bool(sleepers(terminal)),
        "while an approval waits": lambda: DENY_HINT in terminal.window_text(),
        "while a question waits": lambda: QUESTION_HINT in terminal.window_text(),
        "while an answer streams": lambda: "word word" in terminal.window_text(),
    }
    terminal.wait_until(checks[moment], moment)
    children = child_processes(terminal.child.pid)
    terminal.send(ctrl("c"))
    terminal.wait_for("stopped by you")
    assert wait_gone(children)
    assert_usable(terminal)
    assert result_of(terminal) == [130, 0]


def test_ctrl_c_at_many_moments_breaks_nothing(open_terminal: OpenTerminal) -> None:
    slow = one_step(step_call("s1", "run_command", command="sleep 0.2"), step_reply("s1", "done", delay_ms=100))
    terminal = open_terminal(AGAIN, *slow)
    # From the early prompt, long before the program is loaded, to after the run; two in a row would quit.
    terminal.wait_for(">")
    for pause in (0.0, 0.1, 0.3, 0.05, 0.2):
        terminal.send(ctrl("c"))
        terminal.watch(pause)
        terminal.send("continue" + ENTER)
        terminal.watch(pause)
    terminal.wait_until(
        lambda: len(result_of(terminal)) >= 1 and terminal.window_text().count("continue") >= 1, "a run"
    )
    terminal.wait_stable()
    assert_usable(terminal)
    assert "Traceback" not in terminal.full_text()
    assert set(result_of(terminal)) <= {0, 130}


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
def test_ctrl_c_while_the_program_loads_exits_without_a_traceback(open_terminal: OpenTerminal, name: str) -> None:
    terminal = open_terminal(AGAIN, program=[sys.executable, "-c", BROKEN_IMPORT.replace("{name}", name)])
    before = termios.tcgetattr(terminal.child.child_fd)
    shown = terminal.wait_process_end()
    assert termios.tcgetattr(terminal.child.child_fd) == before
    assert terminal.wait_exit() == 130
    assert "Traceback" not in shown


def test_two_quick_ctrl_c_quit_a_run_cleanly(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(*one_step(step_call("s1", "run_command", command="sleep 60")))
    terminal.send_line("sleep")
    terminal.wait_until(lambda: bool(sleepers(terminal)), "the command to start")
    children = child_processes(terminal.child.pid, with_own=True)
    terminal.send(ctrl("c") + ctrl("c"))
    assert terminal.wait_exit() == 0
    assert wait_gone(children)
    assert result_of(terminal) == [130]
    assert "agent resume" in terminal.full_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_run_log_and_prompt(open_terminal: OpenTerminal, number: signal.Signals) -> None:
    terminal = open_terminal(*one_step(step_call("s1", "run_command", command="sleep 60")))
    before = termios.tcgetattr(terminal.child.child_fd)
    terminal.send_line("sleep")
    terminal.wait_until(lambda: bool(sleepers(terminal)), "the command to start")
    children = child_processes(terminal.child.pid, with_own=True)
    os.kill(terminal.child.pid, number)
    shown = terminal.wait_process_end()
    assert termios.tcgetattr(terminal.child.child_fd) == before
    assert terminal.wait_exit() == 143
    assert wait_gone(children)
    assert result_of(terminal) == [143]
    assert "1 stopped" in shown and "agent resume" in shown
    assert "Traceback" not in shown
    # Cursor shown, wrapping on, bracketed paste off, as a shell expects.
    assert [terminal.raw_output.rfind(on) > terminal.raw_output.rfind(off) for on, off in RESTORED] == [True] * 3


def test_closing_the_terminal_ends_everything(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(*one_step(step_call("s1", "run_command", command="sleep 60")))
    terminal.send_line("sleep")
    terminal.wait_until(lambda: bool(sleepers(terminal)), "the command to start")
    pids = [terminal.child.pid, *child_processes(terminal.child.pid, with_own=True)]
    os.close(terminal.child.child_fd)
    terminal.child.child_fd = -1
    terminal.child.closed = True
    assert wait_gone(pids)
    assert result_of(terminal) == [143]


def test_a_signal_terminates_the_external_program(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("x"))
    terminal.send_line("!sleep 62")
    terminal.wait_until(lambda: bool(sleepers(terminal)), "the command to start")
    children = child_processes(terminal.child.pid, with_own=True)
    os.kill(terminal.child.pid, signal.SIGTERM)
    assert terminal.wait_exit() == 143
    assert wait_gone(children)


def test_ctrl_c_goes_to_the_external_program_and_not_to_the_run(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(*one_step(step_reply("s1", "The run continued.", delay_ms=1500)))
    terminal.send_line("start")
    terminal.wait_for("s1 Title of s1")
    terminal.send_line("!sleep 63")
    terminal.wait_until(lambda: bool(sleepers(terminal)), "the command to start")
    terminal.send(ctrl("c"))
    terminal.wait_for(f"exit 130; {SHELL_OUTPUT_NOTE}")
    terminal.wait_for("1 ok")
    assert result_of(terminal) == [0]


GRAB = (
    'exec 2>/dev/null; for f in /dev/tty /dev/console; do echo GRAB"BED" > $f; done; '
    "stty -echo < /dev/tty; read -t 1 x < /dev/tty; echo grabbed:$x; tty; echo done"
)


@pytest.mark.parametrize("backend", ["sandbox", "host"])
def test_a_command_of_the_model_cannot_access_the_terminal(open_terminal: OpenTerminal, backend: str) -> None:
    terminal = open_terminal(
        *one_step(step_call("s1", "run_command", command=GRAB), step_reply("s1", "That was it.", delay_ms=300)),
        AGENT_BACKEND=backend,
        AGENT_APPROVAL_MODE="yolo",
    )
    terminal.send_line("grab")
    terminal.wait_for("s1 Title of s1")
    terminal.send("typed meanwhile")
    terminal.wait_for("That was it.")
    terminal.wait_for("> typed meanwhile")
    assert "GRABBED" not in terminal.raw_output.decode()
    output = next(str(event["output"]) for event in events(terminal) if event["type"] == "tool.completed")
    assert "not a tty" in output and "grabbed:\n" in output, output


def test_ctrl_d_during_a_run_quits_only_if_the_prompt_is_empty(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(
        plan(step("a"), step("b", "a")),
        step_reply("a", "a", delay_ms=600),
        step_reply("b", "b"),
        composer_reply("All of it."),
        AGAIN,
    )
    terminal.send_line("go")
    terminal.wait_for("a Title of a")
    terminal.send("draft" + ctrl("d"))
    terminal.wait_for("All of it.")
    # The prompt is drawn again in a frame after the answer.
    terminal.wait_until(lambda: terminal.window_text().splitlines()[-2:-1] == ["> draft"], "the draft in the prompt")
    terminal.send(ctrl("c") + ctrl("d"))
    assert terminal.wait_exit() == 0


def test_a_draft_survives_the_end_of_a_run(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(*one_step(step_reply("s1", "Done now.", delay_ms=500)))
    terminal.send_line("go")
    terminal.wait_for("s1 Title of s1")
    terminal.send("the next thought")
    terminal.wait_for("Done now.")
    terminal.pause()
    terminal.wait_in_window("> the next thought")


def test_after_kill_9_files_match_the_log(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(
        *one_step(
            step_call("s1", "write_file", path="kept.txt", content="kept"),
            step_call("s1", "run_command", command="sleep 60"),
        ),
        AGENT_APPROVAL_MODE="yolo",
    )
    terminal.send_line("write")
    terminal.wait_for("s1 write_file kept.txt")
    terminal.wait_until(lambda: bool(sleepers(terminal)), "the command to start")
    children = child_processes(terminal.child.pid, with_own=True)
    os.kill(terminal.child.pid, signal.SIGKILL)
    terminal.wait_exit()
    assert (terminal.folder / "kept.txt").read_text() == "kept"
    assert [event["status"] for event in events(terminal) if event["type"] == "tool.completed"] == ["ok"]
    assert wait_gone(children), [Path(f"/proc/{pid}/cmdline").read_text() for pid in children]
