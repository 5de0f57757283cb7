"""Conversations in the REPL: requests, answers, the queue, and quitting."""

import json
import os
import signal

import pytest

from cli.repl.commands.session_commands import NEW_SESSION
from cli.repl.repl import CONFIRM_EXIT
from tests.agent.backends.backend_cases import find_processes, find_survivors
from tests.cli.repl.terminal_session import (
    ENTER,
    OpenTerminal,
    TerminalSession,
    child_processes,
    command_line_of,
    ctrl,
    wait_gone,
)
from tests.cli.terminal_user import answer, composer_reply, one_step, plan, step, step_call, step_reply
from tests.programs import needs

pytestmark = pytest.mark.slow


def events(terminal: TerminalSession) -> list[dict[str, object]]:
    logs = sorted(terminal.user.data.glob("sessions/*/events.jsonl"))
    return [json.loads(line) for log in logs for line in log.read_text().splitlines()]


def reply_to(request: str, reply: dict[str, object]) -> dict[str, object]:
    """Match a reply to one request; every request plays the script from its start."""
    match = reply["match"]
    assert isinstance(match, dict)
    return {**reply, "match": {**match, "contains": f"Request: {request}"}}


def test_a_request_is_answered_and_the_prompt_comes_back(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Forty-two."))
    terminal.send_line("what is six times seven?")
    terminal.wait_for("Forty-two.")
    terminal.send(ctrl("d"))
    assert terminal.wait_exit() == 0


def test_all_requests_share_one_session(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(reply_to("one", answer("First answer.")), reply_to("two", answer("Second answer.")))
    terminal.send_line("one")
    terminal.wait_for("First answer.")
    terminal.send_line("two")
    terminal.wait_for("Second answer.")
    assert len({event["session_id"] for event in events(terminal)}) == 1
    assert len({event["run_id"] for event in events(terminal)}) == 2


def test_clear_starts_a_new_session(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(reply_to("one", answer("First answer.")), reply_to("two", answer("Second answer.")))
    terminal.send_line("one")
    terminal.wait_for("First answer.")
    terminal.send_line("/clear")
    terminal.wait_for(NEW_SESSION)
    terminal.send_line("two")
    terminal.wait_for("Second answer.")
    assert len({event["session_id"] for event in events(terminal)}) == 2


def test_a_request_and_clear_typed_before_the_prompt_is_up_run_in_this_order(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(reply_to("one", answer("First answer.")), reply_to("two", answer("Second answer.")))
    for line in ("one", "/clear", "two"):
        terminal.send(line + ENTER)
    terminal.wait_for("First answer.")
    shown = terminal.wait_for("Second answer.")
    assert shown.index("First answer.") < shown.index(NEW_SESSION) < shown.index("Second answer.")
    assert len({event["session_id"] for event in events(terminal)}) == 2


def test_a_request_sent_during_a_run_is_queued(open_terminal: OpenTerminal) -> None:
    slow = one_step(step_reply("s1", "The slow one.", delay_ms=1500))
    terminal = open_terminal(reply_to("quick", answer("The next one.")), *slow)
    terminal.send_line("slow")
    terminal.wait_for("s1 Title of s1")
    terminal.send_line("quick")
    terminal.wait_for("queued: quick")
    shown = terminal.wait_for("The next one.")
    assert shown.index("The slow one.") < shown.index("> quick") < shown.index("The next one.")


def test_ctrl_c_stops_the_run_and_its_processes_and_returns_to_the_prompt(open_terminal: OpenTerminal) -> None:
    slow = one_step(step_call("s1", "run_command", command="echo started; sleep 60 & sleep 60"))
    terminal = open_terminal(reply_to("and now", answer("Still here.")), *slow)
    terminal.send_line("sleep")
    terminal.wait_until(
        lambda: any(event["type"] == "tool.started" for event in events(terminal)), "the command to start"
    )
    terminal.send(ctrl("c"))
    terminal.wait_for("stopped by you")
    terminal.wait_until(lambda: not sleepers(terminal), "the command to end")
    terminal.send_line("and now?")
    terminal.wait_for("Still here.")


def sleepers(terminal: TerminalSession) -> list[int]:
    return [pid for pid in child_processes(terminal.child.pid) if "sleep" in command_line_of(pid)]


def test_ctrl_c_at_an_empty_prompt_explains_how_to_quit_and_a_second_one_quits(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("x"))
    terminal.wait_ready()
    terminal.pause()
    terminal.send("half a thought" + ctrl("c"))
    terminal.wait_gone("half a thought")
    terminal.send(ctrl("c"))
    terminal.wait_for(CONFIRM_EXIT)
    terminal.send(ctrl("c"))
    assert terminal.wait_exit() == 0


def test_kill_9_loses_no_step_shown_as_finished(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(
        plan(step("a"), step("b", "a")),
        step_reply("a", "a is done"),
        step_reply("b", "b is done", delay_ms=30_000),
        composer_reply("never"),
    )
    terminal.send_line("go")
    terminal.wait_for("✓ a Title of a")
    os.kill(terminal.child.pid, signal.SIGKILL)
    assert terminal.wait_exit() == 128 + signal.SIGKILL
    ended = [event for event in events(terminal) if event["type"] == "step.completed"]
    assert [(event["step_id"], event["status"]) for event in ended] == [("a", "ok")]


def test_input_typed_while_the_program_loads_is_not_lost(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Early bird."))
    terminal.send("too early" + ENTER)
    shown = terminal.wait_for("Early bird.")
    assert "> too early" in shown


def test_without_a_terminal_the_error_suggests_agent_run(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("x"))
    ended = terminal.user.agent()
    assert (ended.exit_code, "agent run" in ended.stderr, ended.stdout) == (2, True, "")


def test_quitting_during_a_run_leaves_no_processes(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(*one_step(step_call("s1", "run_command", command="sleep 61")))
    terminal.send_line("sleep")
    terminal.wait_until(lambda: bool(sleepers(terminal)), "the command to start")
    children = child_processes(terminal.child.pid, with_own=True)
    terminal.send(ctrl("d"))
    assert terminal.wait_exit() == 0
    assert wait_gone(children)


def test_continue_opens_the_last_session(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(reply_to("one", answer("First answer.")), reply_to("two", answer("Second answer.")))
    terminal.send_line("one")
    terminal.wait_for("First answer.")
    terminal.send(ctrl("d"))
    assert terminal.wait_exit() == 0
    again = open_terminal(
        reply_to("one", answer("First answer.")), reply_to("two", answer("Second answer.")), words=("-c",)
    )
    again.wait_for(": 1 request so far")
    again.wait_for("> one")
    again.send_line("two")
    again.wait_for("Second answer.")
    assert len({event["session_id"] for event in events(again)}) == 1


def test_resuming_an_unknown_session_is_an_error(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("x"), words=("-r", "nonsense"))
    assert terminal.wait_exit() == 42
    assert "'nonsense'" in terminal.full_text()


@needs("bwrap")
def test_what_one_request_leaves_running_is_there_for_the_next_until_the_end(open_terminal: OpenTerminal) -> None:
    mark = f"3{os.getpid()}"
    terminal = open_terminal(
        reply_to("leave", plan(step("s1"))),
        step_call("s1", "run_command", command=f"echo kept > /tmp/note; sleep {mark} & true"),
        step_reply("s1", "Left."),
        reply_to("look", plan(step("s2"))),
        step_call("s2", "run_command", command=f"cat /tmp/note; pgrep -fx 'sleep {mark}' | wc -l"),
        step_reply("s2", "Looked."),
        AGENT_APPROVAL_MODE="yolo",
    )
    terminal.send_line("leave")
    terminal.wait_for("Left.")
    assert find_processes(f"sleep {mark}")
    terminal.send_line("look")
    terminal.wait_for("Looked.")
    outputs = [event["output"] for event in events(terminal) if event["type"] == "tool.completed"]
    assert outputs[-1] == "kept\n1"
    terminal.send(ctrl("d"))
    assert terminal.wait_exit() == 0
    assert find_survivors(f"sleep {mark}") == []
