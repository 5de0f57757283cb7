"""A terminal that only knows lines: requests, progress, approvals and commands, with nothing ever redrawn."""

import re
from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, TerminalSession, ctrl
from tests.cli.repl.test_conversation import reply_to
from tests.cli.repl.ui.test_approvals_inline import PUSH, decisions, push_script
from tests.cli.terminal_user import answer, composer_reply, one_step, plan, step, step_call, step_reply
from tests.programs import needs

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]


def send_line(seat: TerminalSession, line: str) -> None:
    seat.send(line + ENTER)


def test_a_request_is_answered_in_lines_and_the_prompt_comes_back(sit: Open) -> None:
    seat = sit(
        plan(step("a"), step("b", "a")),
        step_reply("a", "x"),
        step_reply("b", "y"),
        composer_reply("Both are done."),
        TERM="dumb",
    )
    seat.wait_for("\n>")
    send_line(seat, "go")
    shown = seat.wait_for("2 ok\n>")
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
    seat.send(ctrl("d"))
    assert seat.wait_exit() == 0
    assert b"\x1b" not in seat.raw_output


@needs("bwrap")
def test_what_commands_wrote_and_changed_and_how_they_ended_is_told(sit: Open) -> None:
    seat = sit(
        *one_step(
            step_call("s1", "run_command", command="seq 9; exit 3"),
            step_call("s1", "write_file", path="x.txt", content="new\n"),
            step_reply("s1", "Not **all** of it."),
        ),
        TERM="dumb",
        AGENT_APPROVAL_MODE="auto-edit",
    )
    seat.wait_for("\n>")
    send_line(seat, "go")
    shown = seat.wait_for("1 ok\n>")
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
    slow = {**step_call("s1", "run_command", command=PUSH), "delay_ms": 700}
    seat = sit(*one_step(slow, step_reply("s1", "that was it")), TERM="dumb")
    seat.wait_for("\n>")
    send_line(seat, "push it")
    seat.wait_for("s1: Title of s1")
    seat.send("y")
    seat.wait_for("or write why not:")
    assert decisions(seat) == []
    send_line(seat, "use a branch")
    seat.wait_for("that was it")
    assert decisions(seat) == ["deny"]


def test_another_command_can_be_given_and_a_question_answered_by_number(sit: Open) -> None:
    asking = {"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?", "ask_options": ["red", "blue"]}
    seat = sit(reply_to("paint", plan(asking)), *push_script(), TERM="dumb")
    seat.wait_for("\n>")
    send_line(seat, "push it")
    seat.wait_for("or write why not:")
    send_line(seat, "e")
    seat.wait_for(f"run instead of {PUSH}")
    send_line(seat, "echo instead")
    seat.wait_for("that was it")
    send_line(seat, "paint it")
    seat.wait_for("your answer:")
    send_line(seat, "2")
    seat.wait_for("✓ q Ask")
    assert decisions(seat) == ["allow"]


def test_commands_work_and_say_when_they_are_wrong(sit: Open) -> None:
    seat = sit(answer("x"), TERM="dumb")
    seat.wait_for("\n>")
    send_line(seat, "/mode yolo")
    seat.wait_for("approval mode: yolo")
    send_line(seat, "/mode wild")
    seat.wait_for("there is no mode 'wild'")
    send_line(seat, "/tools")
    seat.wait_for("run_command")
    send_line(seat, "!echo from $((40 + 2))")
    seat.wait_for("from 42")
    seat.wait_for("your next request takes this output along")
    send_line(seat, "/exit")
    assert seat.wait_exit() == 0


def test_ctrl_c_ends_the_run_and_at_the_prompt_says_how_to_leave(sit: Open) -> None:
    slow = one_step(step_call("s1", "run_command", command="sleep 60"))
    seat = sit(reply_to("and now", answer("Still here.")), *slow, TERM="dumb")
    seat.wait_for("\n>")
    send_line(seat, "sleep")
    seat.wait_for("s1: Title of s1")
    seat.send(ctrl("c"))
    seat.wait_for("error: interrupted")
    seat.wait_for("exit 130\n  go on with: agent resume")
    send_line(seat, "and now?")
    seat.wait_for("Still here.")
    seat.send(ctrl("c"))
    seat.wait_for("press Ctrl-C again")
    seat.send(ctrl("c"))
    assert seat.wait_exit() == 0
