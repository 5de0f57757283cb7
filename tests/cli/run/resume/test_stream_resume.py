"""A program resumes runs, and gives every request a configuration of its own."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal_user import User, lead_reply

pytestmark = pytest.mark.slow
STREAM = ("run", "--input-format", "stream-json", "--output-format", "stream-json", "--scratch")


def drive(user: User, *commands: dict[str, object], flags: tuple[str, ...] = ()) -> list[dict[str, object]]:
    lines = "".join(json.dumps(command) + "\n" for command in commands)
    return user.agent(*STREAM, *flags, stdin=lines, AGENT_PLANNING="auto").events


def test_a_request_has_a_configuration_and_says_what_it_is_for(user: User, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1")
    config = {"model": user.script(lead_reply("Seen.")), "input_files": [str(tmp_path / "data.csv")]}
    ids = {"task_id": "t1", "trace_id": "a" * 32}
    events = drive(user, {"type": "request", "text": "look", "config": config, **ids}, flags=("--session", "s1"))
    assert (events[0]["type"], events[0]["task_id"], events[0]["trace_id"]) == ("init", "t1", "a" * 32)
    assert events[-1]["result"] == "Seen."
    assert (user.data / "sessions" / "s1" / "workspace" / "input" / "data.csv").read_text() == "1"


def test_a_run_that_did_not_finish_is_resumed(user: User) -> None:
    failed = drive(user, {"type": "request", "text": "look", "config": {"model": user.script()}})
    assert failed[-1]["is_error"]
    model = user.script(lead_reply("Seen now."))
    run_id = failed[-1]["run_id"]
    events = drive(user, {"type": "resume", "run_id": run_id, "config": {"model": model}, "task_id": "t2"})
    assert (events[0]["resumes"], events[0]["task_id"]) == (run_id, "t2")
    assert events[0]["session_id"] == failed[0]["session_id"]
    assert events[-1]["result"] == "Seen now."


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ({"type": "resume", "run_id": "run-0"}, "there is no run 'run-0'"),
        ({"type": "resume"}, "missing field run_id"),
        ({"type": "request", "text": "x", "trace_id": "XYZ"}, "32 hexadecimal digits"),
        ({"type": "request", "text": "x", "config": {"modell": "m"}}, "unknown field config.modell"),
    ],
)
def test_what_cannot_be_done_is_reported(user: User, command: dict[str, object], problem: str) -> None:
    assert any(problem in str(event.get("message", event.get("error"))) for event in drive(user, command))
