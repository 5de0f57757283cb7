"""The log file of all runs, and `agent logs`."""

import json
import stat
import subprocess
from pathlib import Path

import pytest

from tests.cli.terminal_user import User, lead_call, lead_reply

pytestmark = pytest.mark.slow
AUTO = {"AGENT_PLANNING": "auto"}


def run(user: User, *replies: object, words: tuple[str, ...] = (), **environ: str) -> None:
    model = user.script(*replies)
    user.agent("run", "--model", model, "-C", str(user.home), "--session", "s1", *words, "go", **{**AUTO, **environ})


def lines(user: User, name: str = "agent.jsonl") -> list[dict[str, object]]:
    path = user.data / "logs" / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_run_leaves_its_start_and_its_end(user: User) -> None:
    run(user, lead_reply("Done."))
    events = [(line["level"], line["event"]) for line in lines(user)]
    assert events[0] == ("info", "init")
    assert events[-1] == ("info", "result")
    assert {line["session_id"] for line in lines(user)} == {"s1"}


def test_only_the_owner_can_read_the_log(user: User) -> None:
    run(user, lead_reply("Done."))
    path = user.data / "logs" / "agent.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_failing_tool_leaves_one_entry_in_the_error_log_with_its_id(user: User) -> None:
    run(user, lead_call("read_file", path="missing.txt"), lead_reply("Done."))
    (error,) = [line for line in lines(user, "errors.jsonl") if line["event"] == "tool.completed"]
    assert (error["event"], error["tool"], error["step_id"]) == ("tool.completed", "read_file", "lead")
    assert error["tool_id"]
    assert "missing.txt" in str(error["message"])


@pytest.mark.parametrize(
    ("environ", "has_debug"),
    [
        ({}, False),
        ({"DEBUG": "true"}, True),
        ({"DEBUG": "app:*"}, False),
        ({"LOG_LEVEL": "DEBUG"}, True),
        ({"LOG_LEVEL": "strange"}, False),
        ({"LOG_LEVEL": "info", "DEBUG": "1"}, False),
        ({"AGENT_LOG_LEVEL": "debug", "LOG_LEVEL": "error"}, True),
    ],
)
def test_debug_and_log_level_choose_what_is_written(user: User, environ: dict[str, str], has_debug: bool) -> None:
    run(user, lead_reply("Done."), **environ)
    assert ("debug" in [line["level"] for line in lines(user)]) == has_debug


def test_level_off_and_ephemeral_runs_write_nothing(user: User) -> None:
    run(user, lead_reply("Done."), AGENT_LOG_LEVEL="off")
    model = user.script(lead_reply("Done."))
    user.agent("run", "--model", model, "--ephemeral", "--scratch", "go", **AUTO)
    assert lines(user) == []


def test_secrets_are_masked(user: User) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"
    run(user, lead_call("read_file", path=f"{secret}.txt"), lead_reply("Done."), OPENAI_API_KEY=secret)
    assert secret not in (user.data / "logs" / "agent.jsonl").read_text()


def test_the_command_filters_by_session_and_level(user: User) -> None:
    run(user, lead_call("read_file", path="missing.txt"), lead_reply("Done."))
    run(user, lead_reply("Done."), words=("--session", "s2"))
    shown = user.agent("logs", "--session", "s1", "--level", "error", "--json").stdout
    assert [json.loads(line)["event"] for line in shown.splitlines()] == ["tool.completed", "error", "result"]
    text = user.agent("logs", "--session", "s2").stdout
    assert " INFO    s2 result: success" in text
    assert " s1 " not in text


def test_follow_shows_new_lines_until_it_is_stopped(user: User) -> None:
    run(user, lead_reply("Done."))
    follower = subprocess.Popen(
        user.command("logs", "--follow", "--json", "-n", "1"), env=user.environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert follower.stdout
        assert json.loads(follower.stdout.readline())["event"] == "result"
        run(user, lead_reply("Done."), words=("--session", "s3"))
        assert json.loads(follower.stdout.readline())["session_id"] == "s3"
    finally:
        follower.terminate()
        follower.wait()
        if follower.stdout:
            follower.stdout.close()


def test_a_log_that_cannot_be_written_does_not_disturb_the_run(user: User) -> None:
    user.data.mkdir()
    (user.data / "logs").write_text("in the way")
    model = user.script(lead_reply("Done."))
    ended = user.agent("run", "--model", model, "-C", str(user.home), "go", **AUTO)
    assert (ended.exit_code, ended.stdout) == (0, "Done.\n")


def test_docs_name_the_files(user: User) -> None:
    run(user, lead_reply("Done."))
    assert sorted(path.name for path in Path(user.data / "logs").iterdir()) == ["agent.jsonl"]


def test_an_empty_log_is_said(user: User) -> None:
    ended = user.agent("logs")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "(nothing in the log)\n", "")
    assert user.agent("logs", "--json").stdout == ""
