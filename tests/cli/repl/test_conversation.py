"""Talking with the REPL: requests, answers, the queue, and leaving."""

import json
import os
import signal
from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, Seat, all_gone, ctrl, processes_below, words_of
from tests.cli.terminal_user import answer, calls, composes, one_step, plan, says, step

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]


def events(seat: Seat) -> list[dict[str, object]]:
    logs = sorted(seat.user.data.glob("sessions/*/events.jsonl"))
    return [json.loads(line) for log in logs for line in log.read_text().splitlines()]


def to(request: str, reply: dict[str, object]) -> dict[str, object]:
    """The reply to one request of several; every request plays the script from its beginning."""
    match = reply["match"]
    assert isinstance(match, dict)
    return {**reply, "match": {**match, "contains": f"Request: {request}"}}


def test_a_request_is_answered_and_the_prompt_comes_back(sit: Open) -> None:
    seat = sit(answer("Forty-two."))
    seat.says("what is six times seven?")
    seat.sees("Forty-two.")
    seat.types(ctrl("d"))
    assert seat.ends() == 0


def test_all_requests_of_a_sitting_are_one_session(sit: Open) -> None:
    seat = sit(to("one", answer("First answer.")), to("two", answer("Second answer.")))
    seat.says("one")
    seat.sees("First answer.")
    seat.says("two")
    seat.sees("Second answer.")
    assert len({event["session_id"] for event in events(seat)}) == 1
    assert len({event["run_id"] for event in events(seat)}) == 2


def test_a_new_session_begins_with_clear(sit: Open) -> None:
    seat = sit(to("one", answer("First answer.")), to("two", answer("Second answer.")))
    seat.says("one")
    seat.sees("First answer.")
    seat.says("/clear")
    seat.sees("a new session")
    seat.says("two")
    seat.sees("Second answer.")
    assert len({event["session_id"] for event in events(seat)}) == 2


def test_what_is_sent_during_a_run_waits_for_its_end(sit: Open) -> None:
    slow = one_step(says("s1", "The slow one.", delay_ms=1500))
    seat = sit(to("quick", answer("The next one.")), *slow)
    seat.says("slow")
    seat.sees("s1 Title of s1")
    seat.says("quick")
    seat.sees("queued: quick")
    shown = seat.sees("The next one.")
    assert shown.index("The slow one.") < shown.index("> quick") < shown.index("The next one.")


def test_ctrl_c_ends_the_run_with_all_its_processes_and_gives_the_prompt_back(sit: Open) -> None:
    slow = one_step(calls("s1", "run_command", command="echo begun; sleep 60 & sleep 60"))
    seat = sit(to("and now", answer("Still here.")), *slow)
    seat.says("sleep")
    seat.until(lambda: any(event["type"] == "tool.started" for event in events(seat)), "the command to start")
    seat.types(ctrl("c"))
    seat.sees("exit 130")
    seat.until(lambda: not sleepers(seat), "the command to end")
    seat.says("and now?")
    seat.sees("Still here.")


def sleepers(seat: Seat) -> list[int]:
    return [pid for pid in processes_below(seat.child.pid) if "sleep" in words_of(pid)]


def test_ctrl_c_at_an_empty_prompt_says_how_to_leave_and_a_second_one_leaves(sit: Open) -> None:
    seat = sit(answer("x"))
    seat.sees("Ctrl-D leaves")
    seat.settles()
    seat.types("half a thought" + ctrl("c"))
    seat.sees_no_more("half a thought")
    seat.types(ctrl("c"))
    seat.sees("press Ctrl-C again")
    seat.types(ctrl("c"))
    assert seat.ends() == 0


def test_kill_9_loses_nothing_that_was_shown_as_finished(sit: Open) -> None:
    seat = sit(
        plan(step("a"), step("b", "a")),
        says("a", "a is done"),
        says("b", "b is done", delay_ms=30_000),
        composes("never"),
    )
    seat.says("go")
    seat.sees("✓ a Title of a")
    os.kill(seat.child.pid, signal.SIGKILL)
    assert seat.ends() == 128 + signal.SIGKILL
    ended = [event for event in events(seat) if event["type"] == "step.completed"]
    assert [(event["step_id"], event["status"]) for event in ended] == [("a", "ok")]


def test_what_was_typed_while_the_program_loads_is_not_lost(sit: Open) -> None:
    seat = sit(answer("Early bird."))
    seat.types("too early" + ENTER)
    shown = seat.sees("Early bird.")
    assert "> too early" in shown


def test_without_a_terminal_it_says_what_to_use_instead(sit: Open) -> None:
    seat = sit(answer("x"))
    ended = seat.user.agent()
    assert (ended.exit_code, "agent run" in ended.stderr, ended.stdout) == (2, True, "")


def test_no_process_is_left_after_leaving_during_a_run(sit: Open) -> None:
    seat = sit(*one_step(calls("s1", "run_command", command="sleep 61")))
    seat.says("sleep")
    seat.until(lambda: bool(sleepers(seat)), "the command to start")
    below = processes_below(seat.child.pid, with_keeper=True)
    seat.types(ctrl("d"))
    assert seat.ends() == 0
    assert all_gone(below)


def test_a_prompt_can_be_opened_where_the_last_one_ended(sit: Open) -> None:
    seat = sit(to("one", answer("First answer.")), to("two", answer("Second answer.")))
    seat.says("one")
    seat.sees("First answer.")
    seat.types(ctrl("d"))
    assert seat.ends() == 0
    again = sit(to("one", answer("First answer.")), to("two", answer("Second answer.")), words=("-c",))
    again.sees("now: 1 request so far")
    again.sees("> one")
    again.says("two")
    again.sees("Second answer.")
    assert len({event["session_id"] for event in events(again)}) == 1


def test_a_session_that_is_not_there_opens_no_prompt(sit: Open) -> None:
    seat = sit(answer("x"), words=("-r", "nonsense"))
    assert seat.ends() == 42
    assert "there is no session 'nonsense'" in seat.all()
