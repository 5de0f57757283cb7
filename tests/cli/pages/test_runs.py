"""`agent runs`: list and show runs, and the evidence for their answers."""

import json
import os
import signal
from pathlib import Path

import pytest

from cli.pages.run_pages import FULL_OUTPUT_IN
from cli.pages.run_stream import NO_RESULT
from tests.agent.sessions.past_runs import completed_run, run_start, write_run
from tests.cli.repl.terminal_session import TerminalSession
from tests.cli.run.test_interruptions import start_run, wait_result, wait_until
from tests.cli.terminal_user import User, composer_reply, event_types, one_step, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
OLD = 1_000_000_000.0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def run_script(user: User, project: Path, *replies: dict[str, object]) -> str:
    """Run a scripted model in the project; return the run id."""
    flags = ("--approval-mode", "auto-edit", "-C", str(project), "--output-format", "stream-json")
    ended = user.agent("run", "--model", user.script(*replies), *flags, "do it")
    return str(ended.events[0]["run_id"])


def test_an_answer_leads_to_the_commands_it_is_based_on(user: User, project: Path) -> None:
    run = run_script(
        user,
        project,
        plan(step("s1"), step("s2", "s1")),
        step_call("s1", "write_file", path="a.txt", content="one\ntwo\n"),
        step_reply("s1", "a.txt is written"),
        step_call("s2", "run_command", command="wc -l < a.txt; exit 3"),
        step_reply("s2", "a.txt has 2 lines"),
        composer_reply("There are 2 lines [s2]."),
    )
    evidence = user.agent("runs", "why", run, "[s2]").stdout
    assert "ran: wc -l < a.txt; exit 3\nended: error, exit 3\n" in evidence
    assert evidence.rstrip().endswith("answer: a.txt has 2 lines")
    assert "+one" in user.agent("runs", "why", "last", "s1").stdout
    document = json.loads(user.agent("runs", "why", run[:-2], "s2", "--json").stdout)
    (call,) = document["step"]["calls"]
    assert (call["exit_code"], call["input"]["command"]) == (3, "wc -l < a.txt; exit 3")
    missing = user.agent("runs", "why", run, "s9")
    assert (missing.exit_code, "its steps: s1, s2" in missing.stderr) == (42, True)


def test_the_full_output_of_a_command_is_evidence(user: User, project: Path) -> None:
    run = run_script(
        user, project, *one_step(step_call("s1", "run_command", command="seq 20000"), step_reply("s1", "counted"))
    )
    evidence = user.agent("runs", "why", run, "s1").stdout
    assert "characters cut" not in evidence
    assert "\n  10000\n" in evidence
    assert FULL_OUTPUT_IN in evidence


def test_checks_are_evidence(user: User, project: Path) -> None:
    replies = (step_reply("s1", "done"), step_reply("s1", "done again"), step_reply("s1", "and again"))
    run = run_script(user, project, plan(step("s1", verify="test -e made")), *replies)
    evidence = user.agent("runs", "why", run, "s1").stdout
    assert "checked: test -e made\nended: error, exit 1: failed\n" in evidence


def test_a_run_is_shown_with_its_plan_and_result(user: User, project: Path) -> None:
    run = run_script(
        user,
        project,
        plan(step("s1"), step("s2", "s1")),
        step_reply("s1", "one"),
        step_reply("s2", "two"),
        composer_reply("both"),
    )
    shown = user.agent("runs", "show", "last").stdout
    assert shown.startswith(f"{run}  success, exit 0\n")
    assert "  s2  ok" in shown
    assert "after s1" in shown
    assert shown.endswith("answer:\n  both\n")
    document = json.loads(user.agent("runs", "show", run, "--json").stdout)
    assert (document["status"], document["exit_code"], document["answer"]) == ("success", 0, "both")
    assert [step["id"] for step in document["steps"]] == ["s1", "s2"]


def test_runs_of_all_sessions_or_of_one_are_listed(user: User) -> None:
    write_run(user.data, "a", completed_run("first"), run="run-1", ts="2025-01-01T00:00:00.000Z", mtime=OLD + 2)
    write_run(user.data, "b", completed_run("second"), run="run-2", ts="2025-01-02T00:00:00.000Z", mtime=OLD + 1)
    rows = json.loads(user.agent("runs", "list", "--json").stdout)
    assert [(row["run_id"], row["session_id"], row["request"]) for row in rows] == [
        ("run-2", "b", "second"),
        ("run-1", "a", "first"),
    ]
    assert len(user.agent("runs", "list", "--session", "a").stdout.splitlines()) == 1
    assert user.agent("runs", "list", "--session", "nope").exit_code == 42
    ended = user.agent("runs", "show", "run-")
    assert (ended.exit_code, "matches 2 runs" in ended.stderr) == (42, True)
    assert user.agent("runs", "list", HOME="/nowhere", AGENT_SANDBOX=str(user.home / "none")).stdout == "(no runs)\n"


def test_events_are_printed_as_logged_and_can_be_filtered(user: User, project: Path) -> None:
    run = run_script(user, project, *one_step(step_call("s1", "run_command", command="true"), step_reply("s1", "done")))
    (log,) = user.data.glob("sessions/*/events.jsonl")
    assert user.agent("runs", "events", run).stdout == log.read_text()
    filtered = user.agent("runs", "events", "last", "--type", "tool.started", "--type", "result")
    assert event_types(filtered.events) == ["tool.started", "result"]
    of_step = user.agent("runs", "events", "last", "--step", "s1").events
    assert {event["step_id"] for event in of_step} == {"s1"}
    assert user.agent("runs", "events", "nope").exit_code == 42


def test_a_run_in_progress_is_followed_to_its_end(user: User, project: Path) -> None:
    model = user.script(
        *one_step(
            step_call("s1", "run_command", command="touch started; while [ ! -e go ]; do sleep 0.05; done"),
            step_reply("s1", "done"),
        )
    )
    run = start_run(user, "run", "x", "--model", model, "-C", str(project), "--approval-mode", "yolo")
    wait_until((project / "started").exists)
    follower = start_run(user, "runs", "events", "last", "--follow")
    assert follower.stdout
    assert json.loads(follower.stdout.readline())["type"] == "init"
    assert json.loads(user.agent("runs", "show", "last", "--json").stdout)["status"] == "running"
    (project / "go").touch()
    assert wait_result(run).exit_code == 0
    followed = wait_result(follower)
    assert (followed.exit_code, event_types(followed.events)[-1]) == (0, "result")


def test_following_a_run_that_is_killed_ends_with_it(user: User, project: Path) -> None:
    model = user.script(*one_step(step_call("s1", "run_command", command="touch started; sleep 60")))
    run = start_run(user, "run", "x", "--model", model, "-C", str(project), "--approval-mode", "yolo")
    wait_until((project / "started").exists)
    follower = start_run(user, "runs", "events", "last", "--follow")
    assert follower.stdout
    follower.stdout.readline()
    os.kill(run.pid, signal.SIGKILL)
    wait_result(run)
    followed = wait_result(follower)
    assert (followed.exit_code, NO_RESULT in followed.stderr) == (1, True)
    assert json.loads(user.agent("runs", "show", "last", "--json").stdout)["status"] == "interrupted"


def test_control_characters_in_a_log_are_not_printed(user: User) -> None:
    write_run(user.data, "s", [*run_start(request="a\x1b[2Jb\x9bc\x07d")])
    for words in (("runs", "show", "last"), ("runs", "list"), ("sessions", "show", "s"), ("sessions", "export", "s")):
        shown = user.agent(*words).stdout
        assert not set("\x1b\x9b\x07") & set(shown), words


def test_a_list_on_a_terminal_has_colors_and_short_ids_that_other_commands_accept(user: User, project: Path) -> None:
    run = run_script(user, project, *one_step(step_reply("s1", "done")))
    session = json.loads(user.agent("runs", "show", run, "--json").stdout)["session_id"]
    colored = TerminalSession(user, "runs", "list", NO_COLOR="")
    colored.wait_exit()
    assert f"\x1b[36m{run[-6:]}".encode() in colored.raw_output and run not in colored.full_text()
    plain = TerminalSession(user, "runs", "list")
    plain.wait_exit()
    assert b"\x1b" not in plain.raw_output and run[-6:] in plain.full_text()
    # A pipe gets complete ids.
    piped = user.agent("runs", "list").stdout
    assert run in piped and session in piped and "\x1b" not in piped
    assert run in user.agent("runs", "show", run[-6:]).stdout
    assert session in user.agent("sessions", "show", session[-6:]).stdout
    doctor = TerminalSession(user, "doctor", NO_COLOR="")
    doctor.wait_exit()
    assert b"\x1b[32mok\x1b[0m  python" in doctor.raw_output


def test_pages_on_a_terminal_have_colors_and_are_plain_otherwise(user: User, project: Path) -> None:
    run = run_script(
        user,
        project,
        *one_step(step_call("s1", "write_file", path="made.txt", content="new\n"), step_reply("s1", "done")),
    )
    pages = {
        ("runs", "show", run): (f"\x1b[36m{run}", "\x1b[32msuccess", "\x1b[1mrequest:"),
        ("runs", "why", run, "s1"): ("\x1b[1mchanged:", "\x1b[32m  +new", "\x1b[32m ok"),
        ("tools", "list"): ("\x1b[36mread_file",),
    }
    for words, expected in pages.items():
        colored = TerminalSession(user, *words, NO_COLOR="", columns=120)
        colored.wait_exit()
        for text in expected:
            assert text.encode() in colored.raw_output, (words, text, colored.raw_output)
        plain = TerminalSession(user, *words, columns=120)
        plain.wait_exit()
        assert b"\x1b" not in plain.raw_output
        assert "\x1b" not in user.agent(*words).stdout
