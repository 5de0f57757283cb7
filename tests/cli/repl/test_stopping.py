"""Ctrl-Z and SIGTSTP: the shell gets its terminal back, and `fg` gets the prompt back as it was."""

import os
import signal
from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, Seat, ctrl, processes_below
from tests.cli.terminal_user import User, calls, one_step, says

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]
PUSH = "git push --dry-run"


def in_a_shell(sit: Open, user: User) -> tuple[Seat, int]:
    """Open the prompt from a shell that knows jobs; return the process of the prompt as well."""
    slow = {**calls("s1", "run_command", command=PUSH), "delay_ms": 1500}
    model = user.script(*one_step(slow, says("s1", "that was it")))
    seat = sit(program=("bash", "--norc", "-i"), PS1="shell$ ", AGENT_MODEL=model)
    seat.sees("shell$")
    seat.types(" ".join(user.command()) + ENTER)
    seat.sees("Ctrl-D leaves")
    seat.sees("script:")
    return seat, processes_below(seat.child.pid)[0]


def comes_back(seat: Seat, times: int) -> None:
    seat.until(lambda: seat.all().count("Stopped") == times, f"{times} stops")
    seat.types("echo $((6 * 7))" + ENTER)
    seat.until(lambda: seat.all().count("\n42") == times, "the shell to work")
    seat.types("fg" + ENTER)


@pytest.mark.parametrize("how", ["key", "signal"])
def test_the_prompt_a_run_and_a_card_go_on_where_they_were(sit: Open, user: User, how: str) -> None:
    seat, pid = in_a_shell(sit, user)

    def stops() -> None:
        if how == "key":
            seat.types(ctrl("z"))
        else:
            os.kill(pid, signal.SIGTSTP)

    seat.types("push ")
    seat.sees("> push")
    stops()
    comes_back(seat, 1)
    seat.types("it")
    seat.sees("> push it")
    seat.types(ENTER)
    seat.sees("s1 Title of s1")
    stops()
    comes_back(seat, 2)
    seat.sees("[n] no")
    seat.settles()
    stops()
    comes_back(seat, 3)
    seat.until(lambda: "[n] no" in seat.window().partition("fg")[2], "the card to be offered again")
    seat.settles()
    seat.types("n")
    seat.sees("denied by person")
    seat.sees("that was it")


def test_where_nobody_could_make_it_go_on_it_does_not_stop(sit: Open) -> None:
    seat = sit(*one_step(says("s1", "that was it")))
    seat.sees("Ctrl-D leaves")
    seat.types(ctrl("z") + "go on")
    seat.sees("> go on")
