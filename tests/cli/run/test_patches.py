"""A run that patches several files, looks into the full output of a command, and can be undone."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal_user import User, one_step, step_call, step_reply

pytestmark = pytest.mark.slow

TOKEN = "ghp_" + "a1B2" * 9
PATCH = """*** Begin Patch
*** Update File: config.ini
 token = [REDACTED]
-port = 80
+port = 9090
*** Add File: src/new.py
+print("new")
*** End Patch"""


def test_a_patch_changes_several_files_and_can_be_undone(user: User, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    before = f"token = {TOKEN}\nport = 80\n"
    (folder / "config.ini").write_text(before)
    replies = one_step(step_call("s1", "apply_patch", patch=PATCH), step_reply("s1", "done"))
    flags = ("--approval-mode", "auto-edit", "--session", "s", "-C", str(folder), "--output-format", "stream-json")
    ended = user.agent("run", "--model", user.script(*replies), *flags, "change the port")
    assert ended.exit_code == 0, ended.stderr
    assert (folder / "config.ini").read_text() == f"token = {TOKEN}\nport = 9090\n"
    assert (folder / "src" / "new.py").read_text() == 'print("new")\n'
    assert TOKEN not in ended.stdout
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    (files,) = [event for event in events if event["type"] == "files"]
    assert [change["path"] for change in files["changes"]] == ["config.ini", "src/new.py"]
    assert user.agent("sessions", "undo", "s", "--yes").exit_code == 0
    assert (folder / "config.ini").read_text() == before
    assert not (folder / "src" / "new.py").exists()


def test_a_patch_that_needs_approval_shows_the_diff_of_all_files_without_the_secret(user: User, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text(f"token = {TOKEN}\nport = 80\n")
    replies = one_step(step_call("s1", "apply_patch", patch=PATCH), step_reply("s1", "not done"))
    flags = ("-C", str(tmp_path), "--output-format", "stream-json")
    ended = user.agent("run", "--model", user.script(*replies), *flags, "change the port")
    (asked,) = [event for event in map(json.loads, ended.stdout.splitlines()) if event["type"] == "approval.requested"]
    assert asked["command"] == "config.ini, src/new.py"
    assert " token = [REDACTED]\n-port = 80\n+port = 9090\n" in asked["diff"]
    assert '+print("new")\n' in asked["diff"]
    assert TOKEN not in ended.stdout


def test_the_full_output_of_a_command_is_searched_by_the_path_in_its_notice(user: User) -> None:
    command = "for i in $(seq 30000); do echo line $i; done"
    output = user.data / "sessions" / "s" / "outputs"
    replies = one_step(
        step_call("s1", "run_command", command=command),
        step_call("s1", "search_text", pattern="line 7777$", path=str(output)),
        step_reply("s1", "done"),
    )
    flags = ("--approval-mode", "yolo", "--session", "s", "--output-format", "stream-json")
    ended = user.agent("run", "--model", user.script(*replies), *flags, "count")
    completed = [event for event in map(json.loads, ended.stdout.splitlines()) if event["type"] == "tool.completed"]
    assert "the whole output was 30000 lines, " in completed[0]["output"]
    assert f"full output: {output}/" in completed[0]["output"]
    assert len(completed[0]["output"]) > 14_000
    assert completed[1]["output"].endswith(".txt:7777: line 7777")
