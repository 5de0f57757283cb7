"""A terminal that only knows lines: requests, progress, approvals and commands, with nothing ever redrawn."""

import re
from collections.abc import Callable

import pytest

from tests.cli.terminal_user import answer, calls, composes, one_step, plan, says, step
from tests.repl.seat import ENTER, Seat, ctrl
from tests.repl.test_approvals_inline import PUSH, decided, pushing
from tests.repl.test_conversation import to

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]


def asks(seat: Seat, line: str) -> None:
    seat.types(line + ENTER)


def test_a_request_is_answered_in_lines_and_the_prompt_comes_back(sit: Open) -> None:
    seat = sit(plan(step("a"), step("b", "a")), says("a", "x"), says("b", "y"), composes("Both are done."), TERM="dumb")
    seat.sees("\n>")
    asks(seat, "go")
    shown = seat.sees("Both are done.\n>")
    assert re.sub(r"\d\.\d s", "0.0 s", shown).splitlines()[1:] == [
        "> go",
        "plan:",
        "  a  Title of a",
        "  b  Title of b  (after a)",
        "a: Title of a",
        "a: ok in 0.0 s",
        "b: Title of b",
        "b: ok in 0.0 s",
        "Both are done.",
        ">",
    ]
    seat.types(ctrl("d"))
    assert seat.ends() == 0
    assert b"\x1b" not in seat.bytes_seen


def test_an_approval_is_answered_on_a_line_and_never_by_what_was_typed_before(sit: Open) -> None:
    slow = {**calls("s1", "run_command", command=PUSH), "delay_ms": 700}
    seat = sit(*one_step(slow, says("s1", "that was it")), TERM="dumb")
    seat.sees("\n>")
    asks(seat, "push it")
    seat.sees("s1: Title of s1")
    seat.types("y")
    seat.sees("or write why not:")
    assert decided(seat) == []
    asks(seat, "use a branch")
    seat.sees("that was it")
    assert decided(seat) == ["deny"]


def test_another_command_can_be_given_and_a_question_answered_by_number(sit: Open) -> None:
    asking = {"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?", "ask_options": ["red", "blue"]}
    seat = sit(to("paint", plan(asking)), *pushing(), TERM="dumb")
    seat.sees("\n>")
    asks(seat, "push it")
    seat.sees("or write why not:")
    asks(seat, "e")
    seat.sees(f"run instead of {PUSH}")
    asks(seat, "echo instead")
    seat.sees("that was it")
    asks(seat, "paint it")
    seat.sees("your answer:")
    asks(seat, "2")
    seat.sees("q: ok")
    assert decided(seat) == ["allow"]


def test_commands_work_and_say_when_they_are_wrong(sit: Open) -> None:
    seat = sit(answer("x"), TERM="dumb")
    seat.sees("\n>")
    asks(seat, "/mode yolo")
    seat.sees("approval mode: yolo")
    asks(seat, "/mode wild")
    seat.sees("there is no mode 'wild'")
    asks(seat, "/tools")
    seat.sees("run_command")
    asks(seat, "!echo from $((40 + 2))")
    seat.sees("from 42")
    seat.sees("your next request takes this output along")
    asks(seat, "/exit")
    assert seat.ends() == 0


def test_ctrl_c_ends_the_run_and_at_the_prompt_says_how_to_leave(sit: Open) -> None:
    slow = one_step(calls("s1", "run_command", command="sleep 60"))
    seat = sit(to("and now", answer("Still here.")), *slow, TERM="dumb")
    seat.sees("\n>")
    asks(seat, "sleep")
    seat.sees("s1: Title of s1")
    seat.types(ctrl("c"))
    seat.sees("error: interrupted")
    asks(seat, "and now?")
    seat.sees("Still here.")
    seat.types(ctrl("c"))
    seat.sees("press Ctrl-C again")
    seat.types(ctrl("c"))
    assert seat.ends() == 0
