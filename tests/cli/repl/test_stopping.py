"""Ctrl-Z and SIGTSTP: the shell gets its terminal back, and `fg` gets the prompt back as it was."""

import os
import signal
from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, TerminalSession, child_processes, ctrl
from tests.cli.terminal_user import User, one_step, step_call, step_reply

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]
PUSH = "git push --dry-run"


def open_in_shell(sit: Open, user: User) -> tuple[TerminalSession, int]:
    """Open the prompt from a shell that knows jobs; return the process of the prompt as well."""
    slow = {**step_call("s1", "run_command", command=PUSH), "delay_ms": 1500}
    model = user.script(*one_step(slow, step_reply("s1", "that was it")))
    seat = sit(program=("bash", "--norc", "-i"), PS1="shell$ ", AGENT_MODEL=model)
    seat.wait_for("shell$")
    seat.send(" ".join(user.command()) + ENTER)
    seat.wait_for("Ctrl-D leaves")
    seat.wait_for("script:")
    return seat, child_processes(seat.child.pid)[0]


def resume_from_shell(seat: TerminalSession, times: int) -> None:
    seat.wait_until(lambda: seat.full_text().count("Stopped") == times, f"{times} stops")
    seat.send("echo $((6 * 7))" + ENTER)
    seat.wait_until(lambda: seat.full_text().count("\n42") == times, "the shell to work")
    seat.send("fg" + ENTER)


@pytest.mark.parametrize("how", ["key", "signal"])
def test_the_prompt_a_run_and_a_card_go_on_where_they_were(sit: Open, user: User, how: str) -> None:
    seat, pid = open_in_shell(sit, user)

    def stops() -> None:
        if how == "key":
            seat.send(ctrl("z"))
        else:
            os.kill(pid, signal.SIGTSTP)

    seat.send("push ")
    seat.wait_for("> push")
    stops()
    resume_from_shell(seat, 1)
    seat.send("it")
    seat.wait_for("> push it")
    seat.send(ENTER)
    seat.wait_for("s1 Title of s1")
    stops()
    resume_from_shell(seat, 2)
    seat.wait_for("[n] no")
    seat.pause()
    stops()
    resume_from_shell(seat, 3)
    seat.wait_until(lambda: "[n] no" in seat.window_text().partition("fg")[2], "the card to be offered again")
    seat.pause()
    seat.send("n")
    seat.wait_for("you declined")
    seat.wait_for("that was it")


def test_where_nobody_could_make_it_go_on_it_does_not_stop(sit: Open) -> None:
    seat = sit(*one_step(step_reply("s1", "that was it")))
    seat.wait_for("Ctrl-D leaves")
    seat.send(ctrl("z") + "go on")
    seat.wait_for("> go on")
