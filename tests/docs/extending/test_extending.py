"""The examples of docs/extending.md are the programs that are run here."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.run.hooks.hook_files import script, settings_folder
from tests.cli.terminal_user import ProgramResult, User, lead_call, lead_reply
from tests.house.source_tree import ROOT

pytestmark = pytest.mark.slow
PAGE = (ROOT / "docs" / "extending.md").read_text()
AUTO = {"AGENT_PLANNING": "auto", "AGENT_APPROVAL_MODE": "yolo"}


def example(mark: str) -> str:
    """Return the code block that contains a text."""
    blocks = re.findall(r"^```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if mark in block]
    return str(found)


def run(user: User, *replies: object, **environ: str) -> ProgramResult:
    model = user.script(*replies)
    words = ("run", "--model", model, "--output-format", "stream-json", "-C", str(user.home), "go")
    return user.agent(*words, **{**AUTO, **environ})


def outputs(result: ProgramResult) -> list[tuple[object, str]]:
    completed = [event for event in result.events if event["type"] == "tool.completed"]
    return [(event["status"], str(event["output"]).strip()) for event in completed]


def test_the_hook_class_guards_and_writes_its_log(user: User) -> None:
    (user.home / "audit_hook.py").write_text(example("class AuditHook"))
    environ = {"PYTHONPATH": f"{ROOT}:{user.home}"}
    assert user.agent("config", "set", "hooks", "audit_hook:AuditHook", **environ).exit_code == 0
    calls = [lead_call("run_command", command=f"echo {word}") for word in ("prod", "staging")]
    result = run(user, *calls, lead_reply("Done."), **environ)
    denied = "Denied by the hook AuditHook: production is off limits; use staging"
    assert outputs(result) == [("denied", denied), ("ok", "staging")]
    assert (user.home / "audit.log").read_text() == "1 run_command echo prod\n2 run_command echo staging\n"


def test_the_hook_commands_guard_format_and_notify(user: User) -> None:
    for name in ("no-rm.sh", "format.py", "done.sh"):
        script(user.home, f"hooks/{name}", example(f"# {name}:"))
    (settings_folder(user) / "hooks.json").write_text(example('"matcher": "Bash"'))
    result = run(
        user,
        lead_call("run_command", command="rm -rf build"),
        lead_call("write_file", path="a.txt", content="one  \n\ttwo\n"),
        lead_reply("Done."),
    )
    assert outputs(result)[0] == ("denied", "Denied by the hook no-rm.sh: move it to trash/ instead")
    assert "a.txt: use blanks, not tabs" in outputs(result)[1][1]
    assert (user.home / "a.txt").read_text() == "one\n\ttwo\n"
    assert (user.home / "finished.log").read_text() == "finished\n"


def test_the_receiver_prints_what_happens(user: User) -> None:
    # Any free port: 8900 may be in use.
    source = (
        example("# receiver.py")
        .replace("8900", "0")
        .replace("HTTPServer((", "server = HTTPServer((")
        .replace(".serve_forever()", "\nprint(server.server_port, flush=True)\nserver.serve_forever()")
    )
    receiver = subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert receiver.stdout
        port = receiver.stdout.readline().strip()
        run(
            user,
            lead_call("run_command", command="echo hi"),
            lead_reply("Done."),
            AGENT_CALLBACK_URL=f"http://127.0.0.1:{port}",
        )
        lines = [receiver.stdout.readline().strip() for _ in range(4)]
    finally:
        receiver.kill()
        receiver.wait()
        receiver.stdout.close()
    assert lines == ["0 task_started", "0 tool_call", "0 agent_response", "100 task_completed"]


def test_the_embedding_program_runs_two_requests_and_answers_approvals(user: User) -> None:
    program = user.home / "embedding.py"
    program.write_text(example("# embedding.py"))
    work = user.home / "work"
    work.mkdir()
    model = user.script(
        {**lead_call("write_file", path="hello.txt", content="hello\n"), "match": {"contains": "Write hello.txt"}},
        {**lead_call("delete_file", path="hello.txt"), "match": {"contains": "Now delete it"}},
        lead_reply("Done."),
    )
    command = [sys.executable, str(program), model, str(work)]
    ended = subprocess.run(command, env=user.environment(), capture_output=True, text=True, timeout=60, check=False)
    assert ended.stderr == ""
    written, deleted = ended.stdout.split("success, exit code 0\n", 1)
    assert written == "[write_file: ok]\nDone.\n"
    assert deleted.startswith("[delete_file: denied]\nDone.\n")
    assert (work / "hello.txt").read_text() == "hello\n"


def test_the_event_of_the_page_has_the_fields_of_a_real_one() -> None:
    shown = json.loads(example('"event": "tool_call"'))
    assert set(shown) == {"event", "session_id", "data"}
    assert {"turn", "tool_name", "tool_input", "tool_output", "status", "progress", "state_patch"} <= set(shown["data"])


def test_the_page_names_every_event() -> None:
    from agent.hooks.command_config import EVENTS

    assert [event for event in EVENTS if f"| `{event}` |" not in PAGE] == []
    assert Path(ROOT / "docs" / "extending.md").is_file()
