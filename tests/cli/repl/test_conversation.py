"""Talking with the REPL: requests, answers, the queue, and leaving."""

import json
import os
import signal
from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, TerminalSession, child_processes, command_line_of, ctrl, wait_gone
from tests.cli.terminal_user import answer, composer_reply, one_step, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]


def events(seat: TerminalSession) -> list[dict[str, object]]:
    logs = sorted(seat.user.data.glob("sessions/*/events.jsonl"))
    return [json.loads(line) for log in logs for line in log.read_text().splitlines()]


def reply_to(request: str, reply: dict[str, object]) -> dict[str, object]:
    """The reply to one request of several; every request plays the script from its beginning."""
    match = reply["match"]
    assert isinstance(match, dict)
    return {**reply, "match": {**match, "contains": f"Request: {request}"}}


def test_a_request_is_answered_and_the_prompt_comes_back(sit: Open) -> None:
    seat = sit(answer("Forty-two."))
    seat.send_line("what is six times seven?")
    seat.wait_for("Forty-two.")
    seat.send(ctrl("d"))
    assert seat.wait_exit() == 0


def test_all_requests_of_a_sitting_are_one_session(sit: Open) -> None:
    seat = sit(reply_to("one", answer("First answer.")), reply_to("two", answer("Second answer.")))
    seat.send_line("one")
    seat.wait_for("First answer.")
    seat.send_line("two")
    seat.wait_for("Second answer.")
    assert len({event["session_id"] for event in events(seat)}) == 1
    assert len({event["run_id"] for event in events(seat)}) == 2


def test_a_new_session_begins_with_clear(sit: Open) -> None:
    seat = sit(reply_to("one", answer("First answer.")), reply_to("two", answer("Second answer.")))
    seat.send_line("one")
    seat.wait_for("First answer.")
    seat.send_line("/clear")
    seat.wait_for("a new session")
    seat.send_line("two")
    seat.wait_for("Second answer.")
    assert len({event["session_id"] for event in events(seat)}) == 2


def test_what_is_sent_during_a_run_waits_for_its_end(sit: Open) -> None:
    slow = one_step(step_reply("s1", "The slow one.", delay_ms=1500))
    seat = sit(reply_to("quick", answer("The next one.")), *slow)
    seat.send_line("slow")
    seat.wait_for("s1 Title of s1")
    seat.send_line("quick")
    seat.wait_for("queued: quick")
    shown = seat.wait_for("The next one.")
    assert shown.index("The slow one.") < shown.index("> quick") < shown.index("The next one.")


def test_ctrl_c_ends_the_run_with_all_its_processes_and_gives_the_prompt_back(sit: Open) -> None:
    slow = one_step(step_call("s1", "run_command", command="echo begun; sleep 60 & sleep 60"))
    seat = sit(reply_to("and now", answer("Still here.")), *slow)
    seat.send_line("sleep")
    seat.wait_until(lambda: any(event["type"] == "tool.started" for event in events(seat)), "the command to start")
    seat.send(ctrl("c"))
    seat.wait_for("exit 130")
    seat.wait_until(lambda: not sleepers(seat), "the command to end")
    seat.send_line("and now?")
    seat.wait_for("Still here.")


def sleepers(seat: TerminalSession) -> list[int]:
    return [pid for pid in child_processes(seat.child.pid) if "sleep" in command_line_of(pid)]


def test_ctrl_c_at_an_empty_prompt_says_how_to_leave_and_a_second_one_leaves(sit: Open) -> None:
    seat = sit(answer("x"))
    seat.wait_for("Ctrl-D leaves")
    seat.pause()
    seat.send("half a thought" + ctrl("c"))
    seat.wait_gone("half a thought")
    seat.send(ctrl("c"))
    seat.wait_for("press Ctrl-C again")
    seat.send(ctrl("c"))
    assert seat.wait_exit() == 0


def test_kill_9_loses_nothing_that_was_shown_as_finished(sit: Open) -> None:
    seat = sit(
        plan(step("a"), step("b", "a")),
        step_reply("a", "a is done"),
        step_reply("b", "b is done", delay_ms=30_000),
        composer_reply("never"),
    )
    seat.send_line("go")
    seat.wait_for("✓ a Title of a")
    os.kill(seat.child.pid, signal.SIGKILL)
    assert seat.wait_exit() == 128 + signal.SIGKILL
    ended = [event for event in events(seat) if event["type"] == "step.completed"]
    assert [(event["step_id"], event["status"]) for event in ended] == [("a", "ok")]


def test_what_was_typed_while_the_program_loads_is_not_lost(sit: Open) -> None:
    seat = sit(answer("Early bird."))
    seat.send("too early" + ENTER)
    shown = seat.wait_for("Early bird.")
    assert "> too early" in shown


def test_without_a_terminal_it_says_what_to_use_instead(sit: Open) -> None:
    seat = sit(answer("x"))
    ended = seat.user.agent()
    assert (ended.exit_code, "agent run" in ended.stderr, ended.stdout) == (2, True, "")


def test_no_process_is_left_after_leaving_during_a_run(sit: Open) -> None:
    seat = sit(*one_step(step_call("s1", "run_command", command="sleep 61")))
    seat.send_line("sleep")
    seat.wait_until(lambda: bool(sleepers(seat)), "the command to start")
    below = child_processes(seat.child.pid, with_keeper=True)
    seat.send(ctrl("d"))
    assert seat.wait_exit() == 0
    assert wait_gone(below)


def test_a_prompt_can_be_opened_where_the_last_one_ended(sit: Open) -> None:
    seat = sit(reply_to("one", answer("First answer.")), reply_to("two", answer("Second answer.")))
    seat.send_line("one")
    seat.wait_for("First answer.")
    seat.send(ctrl("d"))
    assert seat.wait_exit() == 0
    again = sit(reply_to("one", answer("First answer.")), reply_to("two", answer("Second answer.")), words=("-c",))
    again.wait_for("now: 1 request so far")
    again.wait_for("> one")
    again.send_line("two")
    again.wait_for("Second answer.")
    assert len({event["session_id"] for event in events(again)}) == 1


def test_a_session_that_is_not_there_opens_no_prompt(sit: Open) -> None:
    seat = sit(answer("x"), words=("-r", "nonsense"))
    assert seat.wait_exit() == 42
    assert "there is no session 'nonsense'" in seat.full_text()
