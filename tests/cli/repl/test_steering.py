"""Steering a run: words that its steps hear, and steps that end before their time."""

from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, ESC, TerminalSession, ctrl
from tests.cli.repl.test_conversation import events
from tests.cli.terminal_user import composer_reply, one_step, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]


def test_what_is_steered_is_heard_before_the_next_turn(sit: Open) -> None:
    heard = step_reply("s1", "In French: bonjour.")
    heard["match"] = {"step": "s1", "contains": "The user adds, while you work: in French please"}
    seat = sit(
        *one_step(
            heard, {**step_call("s1", "run_command", command="sleep 1"), "delay_ms": 500}, step_reply("s1", "Hello.")
        )
    )
    seat.send_line("greet")
    seat.wait_for("s1 Title of s1")
    seat.send("in French please" + ctrl("s"))
    seat.wait_for("» in French please")
    assert "Hello." not in seat.wait_for("In French: bonjour.")


def test_words_that_come_with_the_last_turn_are_not_lost(sit: Open) -> None:
    heard = step_reply("s1", "And in French: bonjour.")
    heard["match"] = {"step": "s1", "contains": "The user adds"}
    seat = sit(*one_step(heard, step_reply("s1", "Hello.", delay_ms=1500)))
    seat.send_line("greet")
    seat.wait_for("s1 Title of s1")
    seat.send("in French please" + ctrl("s"))
    seat.wait_for("And in French: bonjour.")


def test_escape_ends_the_only_step_and_the_prompt_comes_back(sit: Open) -> None:
    seat = sit(*one_step(step_call("s1", "run_command", command="sleep 60"), step_reply("s1", "x")))
    seat.send_line("wait")
    seat.wait_until(lambda: any(event["type"] == "tool.started" for event in events(seat)), "the command to start")
    seat.send(ESC)
    seat.wait_for("Stopped by the person.")
    assert [event["status"] for event in events(seat) if event["type"] == "step.completed"] == ["cancelled"]


def test_escape_asks_which_of_several_steps_shall_end(sit: Open) -> None:
    seat = sit(
        plan(step("a"), step("b")),
        step_call("a", "run_command", command="sleep 60"),
        step_reply("b", "b done", delay_ms=4000),
        composer_reply("Only b."),
    )
    seat.send_line("go")
    seat.wait_until(lambda: any(event["type"] == "tool.started" for event in events(seat)), "the command to start")
    seat.send(ESC)
    seat.wait_for("Which step shall end?")
    seat.pause()
    seat.send("1" + ENTER)
    seat.wait_for("Stopped by the person.")
    seat.wait_for("b done" if "b done" in seat.full_text() else "✓ b Title of b")
