"""The plain UI on a dumb terminal: requests, progress, approvals and commands, without redrawing."""

import re

import pytest

from cli.repl.commands.session_commands import REWOUND
from cli.repl.repl import CONFIRM_EXIT, SHELL_OUTPUT_NOTE
from tests.cli.repl.terminal_session import ENTER, OpenTerminal, TerminalSession, ctrl
from tests.cli.repl.test_conversation import reply_to
from tests.cli.repl.ui.test_approvals_inline import PUSH, decisions, push_script
from tests.cli.terminal_user import answer, composer_reply, one_step, plan, step, step_call, step_reply
from tests.programs import needs

pytestmark = pytest.mark.slow


def send_line(terminal: TerminalSession, line: str) -> None:
    terminal.send(line + ENTER)


def test_a_request_is_answered_in_lines_and_the_prompt_returns(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(
        plan(step("a"), step("b", "a")),
        step_reply("a", "x"),
        step_reply("b", "y"),
        composer_reply("Both are done."),
        TERM="dumb",
    )
    terminal.wait_for("\n>")
    send_line(terminal, "go")
    shown = terminal.wait_for("2 ok\n>")
    assert re.sub(r"\d\.\ds", "0.0s", shown).splitlines()[1:] == [
        "> go",
        "",
        "1 ─ ● a  Title of a",
        "2 ─ ● b  Title of b  ← a",
        "a: Title of a",
        "",
        "✓ a Title of a (0.0s)",
        "b: Title of b",
        "✓ b Title of b (0.0s)",
        "",
        "Both are done.",
        "",
        "· 0.0s · 2 ok",
        ">",
    ]
    terminal.send(ctrl("d"))
    assert terminal.wait_exit() == 0
    assert b"\x1b" not in terminal.raw_output


@needs("bwrap")
def test_output_changes_and_exit_codes_of_commands_are_printed(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(
        *one_step(
            step_call("s1", "run_command", command="seq 9; exit 3"),
            step_call("s1", "write_file", path="x.txt", content="new\n"),
            step_reply("s1", "Not **all** of it."),
        ),
        TERM="dumb",
        AGENT_APPROVAL_MODE="auto-edit",
    )
    terminal.wait_for("\n>")
    send_line(terminal, "go")
    shown = terminal.wait_for("1 ok\n>")
    assert re.sub(r"\d\.\ds", "0.0s", shown).splitlines()[5:] == [
        "",
        "• s1 $ seq 9; exit 3  [error, exit 3]",
        "    … 6 lines above",
        "    7",
        "    8",
        "    9",
        "",
        "• s1 write_file x.txt  +1 -0",
        "    1 + new",
        "✓ s1 Title of s1 (0.0s)",
        "",
        "Not **all** of it.",
        "",
        "  wrote x.txt",
        "· 0.0s · 1 ok",
        ">",
    ]


def test_an_approval_is_answered_by_a_line_typed_after_it_appeared(open_terminal: OpenTerminal) -> None:
    slow = {**step_call("s1", "run_command", command=PUSH), "delay_ms": 700}
    terminal = open_terminal(*one_step(slow, step_reply("s1", "that was it")), TERM="dumb")
    terminal.wait_for("\n>")
    send_line(terminal, "push it")
    terminal.wait_for("s1: Title of s1")
    terminal.send("y")
    terminal.wait_for("[n] no")
    assert decisions(terminal) == []
    send_line(terminal, "use a branch")
    terminal.wait_for("that was it")
    assert decisions(terminal) == ["deny"]


def test_a_command_can_be_edited_and_a_question_answered_by_number(open_terminal: OpenTerminal) -> None:
    asking = {"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?", "ask_options": ["red", "blue"]}
    terminal = open_terminal(reply_to("paint", plan(asking)), *push_script(), TERM="dumb")
    terminal.wait_for("\n>")
    send_line(terminal, "push it")
    terminal.wait_for("[n] no")
    send_line(terminal, "e")
    terminal.wait_for(f"run instead of {PUSH}")
    send_line(terminal, "echo instead")
    terminal.wait_for("that was it")
    send_line(terminal, "paint it")
    terminal.wait_for("your answer:")
    send_line(terminal, "2")
    terminal.wait_for("✓ q Ask")
    assert decisions(terminal) == ["allow"]


def test_slash_and_shell_commands_work_and_report_errors(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("x"), TERM="dumb")
    terminal.wait_for("\n>")
    send_line(terminal, "/mode yolo")
    terminal.wait_for("approval mode: yolo")
    send_line(terminal, "/mode wild")
    terminal.wait_for("unknown approval mode 'wild'")
    send_line(terminal, "/tools")
    terminal.wait_for("run_command")
    send_line(terminal, "!echo from $((40 + 2))")
    terminal.wait_for("from 42")
    terminal.wait_for(SHELL_OUTPUT_NOTE)
    send_line(terminal, "/exit")
    assert terminal.wait_exit() == 0


def test_ctrl_c_stops_the_run_and_explains_at_the_prompt_how_to_quit(open_terminal: OpenTerminal) -> None:
    slow = one_step(step_call("s1", "run_command", command="sleep 60"))
    terminal = open_terminal(reply_to("and now", answer("Still here.")), *slow, TERM="dumb")
    terminal.wait_for("\n>")
    send_line(terminal, "sleep")
    terminal.wait_for("s1: Title of s1")
    terminal.send(ctrl("c"))
    terminal.wait_for("stopped by you")
    terminal.wait_for("stopped by you")
    terminal.wait_for("agent resume")
    send_line(terminal, "and now?")
    terminal.wait_for("Still here.")
    terminal.send(ctrl("c"))
    terminal.wait_for(CONFIRM_EXIT)
    terminal.send(ctrl("c"))
    assert terminal.wait_exit() == 0


def test_after_ctrl_c_at_a_question_the_ending_has_lines_of_its_own(open_terminal: OpenTerminal) -> None:
    asking = {"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?"}
    terminal = open_terminal(plan(asking), TERM="dumb")
    terminal.wait_for("\n>")
    send_line(terminal, "paint it")
    terminal.wait_for("your answer:")
    terminal.pause()
    terminal.send(ctrl("c"))
    shown = terminal.wait_for("stopped by you")
    (line,) = (line for line in shown.splitlines() if line.startswith("your answer:"))
    assert line.replace("^C", "").strip() == "your answer:"


def test_a_pasted_heading_is_no_note_and_a_list_is_answered_by_number(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Understood."), TERM="dumb")
    terminal.wait_for("\n>")
    terminal.send(f"# Heading{ENTER}and a text{ENTER}")
    terminal.wait_for("Understood.")
    assert not (terminal.user.data / "MEMORY.md").exists()
    terminal.wait_until(lambda: terminal.full_text().count("Understood.") == 2, "both answers")
    send_line(terminal, "/rewind")
    terminal.wait_for("your answer:")
    terminal.pause()
    send_line(terminal, "1")
    terminal.wait_for(REWOUND)
