"""A terminal that only knows lines: requests, progress, approvals and commands, with nothing ever redrawn."""

import re
from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, Seat, ctrl
from tests.cli.repl.test_conversation import to
from tests.cli.repl.ui.test_approvals_inline import PUSH, decided, pushing
from tests.cli.terminal_user import answer, calls, composes, one_step, plan, says, step

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]


def asks(seat: Seat, line: str) -> None:
    seat.types(line + ENTER)


def test_a_request_is_answered_in_lines_and_the_prompt_comes_back(sit: Open) -> None:
    seat = sit(plan(step("a"), step("b", "a")), says("a", "x"), says("b", "y"), composes("Both are done."), TERM="dumb")
    seat.sees("\n>")
    asks(seat, "go")
    shown = seat.sees("2 ok\n>")
    assert re.sub(r"\d\.\ds", "0.0s", shown).splitlines()[1:] == [
        "> go",
        "1 ─ ● a  Title of a",
        "2 ─ ● b  Title of b  ← a",
        "a: Title of a",
        "✓ a Title of a (0.0s)",
        "b: Title of b",
        "✓ b Title of b (0.0s)",
        "",
        "Both are done.",
        "",
        "· 0.0s · 2 ok",
        ">",
    ]
    seat.types(ctrl("d"))
    assert seat.ends() == 0
    assert b"\x1b" not in seat.bytes_seen


def test_what_commands_wrote_and_changed_and_how_they_ended_is_told(sit: Open) -> None:
    seat = sit(
        *one_step(
            calls("s1", "run_command", command="seq 9; exit 3"),
            calls("s1", "write_file", path="x.txt", content="new\n"),
            says("s1", "Not **all** of it."),
        ),
        TERM="dumb",
        AGENT_APPROVAL_MODE="auto-edit",
    )
    seat.sees("\n>")
    asks(seat, "go")
    shown = seat.sees("1 ok\n>")
    assert re.sub(r"\d\.\ds", "0.0s", shown).splitlines()[4:] == [
        "  s1 $ seq 9; exit 3  [error, exit 3]",
        "      1",
        "      2",
        "      3",
        "      … 6 more lines",
        "  s1 write_file x.txt  +1 -0",
        "      @@ -0,0 +1,1 @@",
        "      +new",
        "~ s1 Title of s1 (partial, 0.0s)",
        "",
        "Not **all** of it.",
        "",
        "  wrote x.txt",
        "· 0.0s · 1 ok",
        ">",
    ]


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
    seat.sees("✓ q Ask")
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
    seat.sees("exit 130\n  go on with: agent resume")
    asks(seat, "and now?")
    seat.sees("Still here.")
    seat.types(ctrl("c"))
    seat.sees("press Ctrl-C again")
    seat.types(ctrl("c"))
    assert seat.ends() == 0
