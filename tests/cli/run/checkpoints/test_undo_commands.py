"""What commands change is shown and can be taken back, like the changes of the file tools."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from agent.sessions.changes.restore import MODIFIED_SINCE
from agent.sessions.checkpoints.recovery import RECORDED_LATE
from tests.cli.terminal_user import User, lead_call, lead_reply, one_step, plan, step, step_call, step_reply
from tests.docs.grammar import broken_rules

pytestmark = pytest.mark.slow
YOLO = ("--approval-mode", "yolo", "--session", "s")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    (folder / "gone.txt").write_text("still here\n")
    (folder / "gone.txt").chmod(0o640)
    (folder / "old").mkdir()
    (folder / "old" / "x").write_text("x")
    (folder / "link").symlink_to("a.txt")
    return folder


def run(user: User, project: Path, *replies: dict[str, object]) -> list[dict[str, object]]:
    words = ("run", "--model", user.script(*replies), *YOLO, "-C", str(project), "--output-format", "stream-json")
    ended = user.agent(*words, "change it")
    assert ended.exit_code == 0, ended.stderr
    assert broken_rules(ended.events) == []
    return ended.events


def state(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        content = str(path.readlink()) if path.is_symlink() else "" if path.is_dir() else path.read_text()
        found[str(path.relative_to(folder))] = (content, path.lstat().st_mode)
    return found


def command(text: str, name: str = "s1") -> dict[str, object]:
    return step_call(name, "run_command", command=text)


def test_everything_a_command_did_is_taken_back_and_done_again(user: User, project: Path) -> None:
    before = state(project)
    text = (
        "sed -i s/one/two/ a.txt && chmod +x a.txt && rm gone.txt && rm -r old && ln -sf gone.txt link"
        " && mkdir -p new/deep && echo n > new/deep/n.txt && touch old"
    )
    events = run(user, project, *one_step(command(text), step_reply("s1", "done")))
    after = state(project)
    (changed,) = [event for event in events if event["type"] == "files"]
    (called,) = [event for event in events if event["type"] == "tool.started"]
    assert (changed["step_id"], changed["command_id"]) == ("s1", called["tool_id"])

    shown = user.agent("sessions", "diff", "s")
    assert "-one\n+two\n" in shown.stdout
    assert "--- a/gone.txt\n+++ /dev/null\n" in shown.stdout
    assert "+n\n" in shown.stdout
    assert "changed: gone.txt" in user.agent("runs", "show", "last").stdout
    assert "changed: new/deep/n.txt (added, +1 -0)" in user.agent("runs", "why", "last", "s1").stdout

    undone = user.agent("sessions", "undo", "s", "--yes")
    assert (undone.exit_code, undone.stderr) == (0, "")
    assert state(project) == before
    redo = json.loads((user.data / "sessions" / "s" / "events.jsonl").read_text().splitlines()[-1])["run_id"]
    assert user.agent("sessions", "undo", "s", "--run", redo, "--yes").exit_code == 0
    assert state(project) == after
    assert not (user.data / "sessions" / "s" / "checkpoint").exists()


def test_files_and_folders_are_counted_apart(user: User, project: Path) -> None:
    run(user, project, *one_step(command("mkdir d; echo x > d/x"), step_reply("s1", "done")))
    assert user.agent("sessions", "diff", "s").stderr == "1 file and 1 folder\n"


def test_what_the_user_changed_since_is_not_touched(user: User, project: Path) -> None:
    run(user, project, *one_step(command("echo two > a.txt; rm gone.txt"), step_reply("s1", "done")))
    (project / "a.txt").write_text("mine\n")
    undone = user.agent("sessions", "undo", "s", "--yes")
    assert undone.exit_code == 1
    assert MODIFIED_SINCE.format(path="a.txt", change="changed") in undone.stdout
    assert (project / "a.txt").read_text() == "mine\n"
    assert (project / "gone.txt").read_text() == "still here\n"


def test_tools_and_commands_change_the_same_file(user: User, project: Path) -> None:
    edit = step_call("s1", "edit_file", path="a.txt", old_text="two", new_text="three")
    replies = one_step(command("echo two > a.txt"), edit, command("echo four >> a.txt"), step_reply("s1", "done"))
    events = run(user, project, *replies)
    assert (project / "a.txt").read_text() == "three\nfour\n"
    changes = [change for event in events if event["type"] == "files" for change in event["changes"]]  # type: ignore[attr-defined]
    assert [earlier["after"] for earlier in changes[:-1]] == [later["before"] for later in changes[1:]]
    assert user.agent("sessions", "undo", "s", "--yes").exit_code == 0
    assert (project / "a.txt").read_text() == "one\n"


def test_one_step_of_a_plan_is_taken_back(user: User, project: Path) -> None:
    steps = (plan(step("s1"), step("s2", "s1")), command("echo 1 > s1.txt", "s1"), step_reply("s1", "ok"))
    run(
        user,
        project,
        *steps,
        command("echo 2 > s2.txt", "s2"),
        step_reply("s2", "ok"),
        {"match": {"purpose": "composer"}, "text": "done"},
    )
    assert user.agent("sessions", "undo", "s", "--step", "s1", "--yes").exit_code == 0
    assert (project / "s2.txt").exists()
    assert not (project / "s1.txt").exists()


def test_a_command_of_the_lead_is_taken_back(user: User, project: Path) -> None:
    script = user.script(lead_call("run_command", command="rm gone.txt"), lead_reply("done"))
    ended = user.agent("run", "--model", script, *YOLO, "-C", str(project), "clean up", AGENT_PLANNING="auto")
    assert ended.exit_code == 0, ended.stderr
    assert user.agent("sessions", "undo", "s", "--yes").exit_code == 0
    assert (project / "gone.txt").stat().st_mode & 0o777 == 0o640


def test_what_a_killed_command_had_changed_is_taken_back(user: User, project: Path) -> None:
    text = "echo two > a.txt; rm gone.txt; touch ready; sleep 100"
    words = ("run", "--model", user.script(*one_step(command(text), step_reply("s1", "done"))), *YOLO)
    process = subprocess.Popen(
        user.command(*words, "-C", str(project), "change it"),
        env=user.environment(),
        cwd=user.home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while not (project / "ready").exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(60)
    undone = user.agent("sessions", "undo", "s", "--yes")
    assert undone.exit_code == 0, undone.stdout
    assert (project / "a.txt").read_text() == "one\n"
    assert (project / "gone.txt").read_text() == "still here\n"
    assert not (project / "ready").exists()
    assert not (user.data / "sessions" / "s" / "checkpoint").exists()
    assert RECORDED_LATE in (user.data / "sessions" / "s" / "events.jsonl").read_text()
