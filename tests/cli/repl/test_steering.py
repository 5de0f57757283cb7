"""Steering a run: words that its steps hear, and steps that end before their time."""

from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, ESC, Seat, ctrl
from tests.cli.repl.test_conversation import events
from tests.cli.terminal_user import calls, composes, one_step, plan, says, step

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]


def test_what_is_steered_is_heard_before_the_next_turn(sit: Open) -> None:
    heard = says("s1", "In French: bonjour.")
    heard["match"] = {"step": "s1", "contains": "The user adds, while you work: in French please"}
    seat = sit(
        *one_step(heard, {**calls("s1", "run_command", command="sleep 1"), "delay_ms": 500}, says("s1", "Hello."))
    )
    seat.says("greet")
    seat.sees("s1 Title of s1")
    seat.types("in French please" + ctrl("s"))
    seat.sees("» in French please")
    assert "Hello." not in seat.sees("In French: bonjour.")


def test_words_that_come_with_the_last_turn_are_not_lost(sit: Open) -> None:
    heard = says("s1", "And in French: bonjour.")
    heard["match"] = {"step": "s1", "contains": "The user adds"}
    seat = sit(*one_step(heard, says("s1", "Hello.", delay_ms=1500)))
    seat.says("greet")
    seat.sees("s1 Title of s1")
    seat.types("in French please" + ctrl("s"))
    seat.sees("And in French: bonjour.")


def test_escape_ends_the_only_step_and_the_prompt_comes_back(sit: Open) -> None:
    seat = sit(*one_step(calls("s1", "run_command", command="sleep 60"), says("s1", "x")))
    seat.says("wait")
    seat.until(lambda: any(event["type"] == "tool.started" for event in events(seat)), "the command to start")
    seat.types(ESC)
    seat.sees("Stopped by the person.")
    assert [event["status"] for event in events(seat) if event["type"] == "step.completed"] == ["cancelled"]


def test_escape_asks_which_of_several_steps_shall_end(sit: Open) -> None:
    seat = sit(
        plan(step("a"), step("b")),
        calls("a", "run_command", command="sleep 60"),
        says("b", "b done", delay_ms=4000),
        composes("Only b."),
    )
    seat.says("go")
    seat.until(lambda: any(event["type"] == "tool.started" for event in events(seat)), "the command to start")
    seat.types(ESC)
    seat.sees("Which step shall end?")
    seat.settles()
    seat.types("1" + ENTER)
    seat.sees("Stopped by the person.")
    seat.sees("b done" if "b done" in seat.all() else "✓ b Title of b")
