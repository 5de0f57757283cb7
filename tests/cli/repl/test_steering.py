"""Steering a run: messages to running steps, and stopping single steps."""

import pytest

from cli.repl.commands.builtin import WHICH_STEP
from cli.repl.repl import NOT_ATTACHED_NOTE
from tests.cli.repl.terminal_session import ENTER, OpenTerminal, TerminalSession, ctrl
from tests.cli.repl.test_conversation import events
from tests.cli.terminal_user import composer_reply, one_step, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow


def step_statuses(terminal: TerminalSession) -> list[object]:
    return [event["status"] for event in events(terminal) if event["type"] == "step.completed"]


def test_a_steering_message_reaches_the_step_before_its_next_turn(open_terminal: OpenTerminal) -> None:
    steered = step_reply("s1", "In French: bonjour.")
    steered["match"] = {"step": "s1", "contains": "The user adds, while you work: in French please"}
    terminal = open_terminal(
        *one_step(
            steered, {**step_call("s1", "run_command", command="sleep 1"), "delay_ms": 500}, step_reply("s1", "Hello.")
        )
    )
    terminal.send_line("greet")
    terminal.wait_for("s1 Title of s1")
    terminal.send("in French please" + ctrl("s"))
    terminal.wait_for("» in French please")
    assert "Hello." not in terminal.wait_for("In French: bonjour.")


def test_a_steering_message_during_the_last_turn_is_not_lost(open_terminal: OpenTerminal) -> None:
    steered = step_reply("s1", "And in French: bonjour.")
    steered["match"] = {"step": "s1", "contains": "The user adds"}
    terminal = open_terminal(*one_step(steered, step_reply("s1", "Hello.", delay_ms=2500)))
    (terminal.folder / "words.txt").touch()
    terminal.send_line("greet")
    terminal.wait_for("s1 Title of s1")
    terminal.send("in French please, see @words.txt" + ctrl("s"))
    terminal.wait_for(NOT_ATTACHED_NOTE)
    terminal.wait_for("And in French: bonjour.")


def test_stop_ends_the_only_running_step(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(*one_step(step_call("s1", "run_command", command="sleep 60"), step_reply("s1", "x")))
    terminal.send_line("wait")
    terminal.wait_until(
        lambda: any(event["type"] == "tool.started" for event in events(terminal)), "the command to start"
    )
    terminal.send_line("/stop")
    terminal.wait_until(lambda: step_statuses(terminal) == ["cancelled"], "the step to stop")


def test_stop_asks_which_of_several_steps_to_end(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(
        plan(step("a"), step("b")),
        step_call("a", "run_command", command="sleep 60"),
        step_reply("b", "b done", delay_ms=4000),
        composer_reply("Only b."),
    )
    terminal.send_line("go")
    terminal.wait_until(
        lambda: any(event["type"] == "tool.started" for event in events(terminal)), "the command to start"
    )
    terminal.send_line("/stop")
    terminal.wait_for(WHICH_STEP)
    terminal.pause()
    terminal.send(ENTER)
    terminal.wait_until(lambda: "cancelled" in step_statuses(terminal), "the step to stop")
    terminal.wait_for("✓ b Title of b")


def test_the_list_of_steps_closes_with_its_run(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(
        plan(step("a"), step("b")),
        step_reply("a", "a done", delay_ms=3000),
        step_reply("b", "b done", delay_ms=3000),
        composer_reply("Both."),
    )
    terminal.send_line("go")
    terminal.wait_for("b Title of b")
    terminal.send_line("/stop")
    terminal.wait_for(WHICH_STEP)
    terminal.wait_for("2 ok")
    terminal.wait_gone(WHICH_STEP)
    terminal.send("usable?")
    terminal.wait_until(lambda: "> usable?" in terminal.window_text(), "the prompt")
