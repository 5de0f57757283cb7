"""`agent sessions`: show, diff, undo and check sessions."""

import json
from pathlib import Path

import pytest

from agent.sessions.changes.restore import MODIFIED_SINCE
from agent.sessions.changes.undo import ALREADY_RESTORED, DELETED
from agent.sessions.upkeep.fsck import INVALID_LINE
from cli.pages.session_upkeep import fsck_summary
from tests.cli.terminal_user import User, one_step, plan, step, step_call, step_reply
from tests.docs.grammar import broken_rules
from tests.house.source_tree import ROOT

pytestmark = pytest.mark.slow
HELLO = f"script:{ROOT}/examples/hello.jsonl"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    (folder / "a.txt").chmod(0o640)
    return folder


def run_script(user: User, project: Path, *replies: dict[str, object], session: str = "s") -> None:
    """Run a scripted model that changes files in the project."""
    flags = ("--approval-mode", "auto-edit", "--allow", "delete_file", "--session", session, "-C", str(project))
    ended = user.agent("run", "--model", user.script(*replies), *flags, "change it")
    assert ended.exit_code == 0, ended.stderr


def edit(old: str, new: str, name: str = "s1", path: str = "a.txt") -> dict[str, object]:
    return step_call(name, "edit_file", path=path, old_text=old, new_text=new)


def read_log(user: User, session: str = "s") -> list[dict[str, object]]:
    lines = (user.data / "sessions" / session / "events.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_session_is_undone_and_the_undo_undone(user: User, project: Path) -> None:
    write = step_call("s1", "write_file", path="new/b.txt", content="b\n")
    run_script(user, project, *one_step(edit("two", "2"), edit("one", "1"), write, step_reply("s1", "done")))
    assert (project / "a.txt").read_text() == "1\n2\nthree\n"

    shown = user.agent("sessions", "diff", "s")
    assert shown.stdout == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n-one\n-two\n+1\n+2\n three\n"
        "--- /dev/null\n+++ b/new/b.txt\n@@ -0,0 +1,1 @@\n+b\n"
    )
    assert shown.stderr == "2 files\n"

    undone = user.agent("sessions", "undo", "s", "--yes")
    assert (undone.exit_code, undone.stderr) == (0, "")
    assert undone.stdout == f"{DELETED.format(path='new/b.txt')}\nRestored a.txt\n"
    assert (project / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert (project / "a.txt").stat().st_mode & 0o777 == 0o640
    assert not (project / "new" / "b.txt").exists()

    run = read_log(user)[-1]["run_id"]
    assert user.agent("sessions", "undo", "s", "--run", str(run), "--yes").exit_code == 0
    assert (project / "a.txt").read_text() == "1\n2\nthree\n"
    assert (project / "new" / "b.txt").read_text() == "b\n"
    runs = {str(event["run_id"]) for event in read_log(user)}
    assert len(runs) == 3
    for name in runs:
        assert broken_rules([event for event in read_log(user) if event["run_id"] == name]) == []


def test_one_step_of_several_is_undone(user: User, project: Path) -> None:
    steps = (plan(step("s1"), step("s2", "s1")), edit("two", "2"), step_reply("s1", "ok"))
    other = step_call("s2", "write_file", path="b.txt", content="b\n")
    run_script(user, project, *steps, other, step_reply("s2", "ok"), {"match": {"purpose": "composer"}, "text": "done"})
    listed = user.agent("sessions", "diff", "s", "--by-step").stdout
    assert next(line for line in listed.splitlines() if line.startswith("# ")).endswith("s1: a.txt (modified)")
    assert "+2" not in user.agent("sessions", "diff", "s", "--step", "s2").stdout
    assert user.agent("sessions", "undo", "s", "--step", "s1", "--yes").stdout == "Restored a.txt\n"
    assert (project / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert (project / "b.txt").read_text() == "b\n"


def test_files_changed_since_are_not_restored_unless_forced(user: User, project: Path) -> None:
    write = step_call("s1", "write_file", path="b.txt", content="b\n")
    run_script(user, project, *one_step(edit("two", "2"), write, step_reply("s1", "done")))
    (project / "a.txt").write_text("by hand\n")
    undone = user.agent("sessions", "undo", "s", "--yes")
    assert undone.exit_code == 1
    assert f"Not restored: {MODIFIED_SINCE.format(path='a.txt', change='changed')}" in undone.stdout
    assert (project / "a.txt").read_text() == "by hand\n"
    assert not (project / "b.txt").exists()
    # The recorded change is still shown, although no file has that content any more.
    assert "-two\n+2\n" in user.agent("sessions", "diff", "s", "--step", "s1").stdout
    forced = user.agent("sessions", "undo", "s", "--step", "s1", "--yes", "--force")
    assert (forced.exit_code, (project / "a.txt").read_text()) == (0, "one\ntwo\nthree\n")
    again = user.agent("sessions", "undo", "s", "--step", "s1", "--yes")
    assert ALREADY_RESTORED.format(path="a.txt") in again.stdout


def test_a_change_in_between_is_not_undone_silently(user: User, project: Path) -> None:
    run_script(user, project, *one_step(edit("two", "2"), step_reply("s1", "done")))
    (project / "a.txt").write_text("one\n2\nthree\nby hand\n")
    run_script(user, project, *one_step(edit("one", "1"), step_reply("s1", "done")))
    undone = user.agent("sessions", "undo", "s", "--yes")
    assert (undone.exit_code, "was also changed by something else" in undone.stdout) == (1, True)
    assert (project / "a.txt").read_text() == "1\n2\nthree\nby hand\n"


def test_without_a_terminal_an_undo_needs_yes(user: User, project: Path) -> None:
    run_script(user, project, *one_step(edit("two", "2"), step_reply("s1", "done")))
    ended = user.agent("sessions", "undo", "s")
    assert (ended.exit_code, "--yes" in ended.stderr) == (2, True)
    assert (project / "a.txt").read_text() == "one\n2\nthree\n"


def test_an_undo_does_not_follow_a_folder_replaced_by_a_symlink(user: User, project: Path, tmp_path: Path) -> None:
    (project / "d").mkdir()
    (project / "d" / "a.txt").write_text("old\n")
    run_script(user, project, *one_step(edit("old", "new", path="d/a.txt"), step_reply("s1", "done")))
    outside = tmp_path / "outside"
    (project / "d").rename(outside)
    (project / "d").symlink_to(outside)
    ended = user.agent("sessions", "undo", "s", "--yes", "--force")
    assert ended.exit_code == 1
    assert (outside / "a.txt").read_text() == "new\n"


def test_saved_copies_are_private_and_have_the_original_content(user: User, project: Path) -> None:
    run_script(user, project, *one_step(edit("two", "2"), step_reply("s1", "done")))
    blobs = user.data / "sessions" / "s" / "blobs"
    assert {blob.stat().st_mode & 0o777 for blob in blobs.iterdir()} == {0o600}
    assert blobs.stat().st_mode & 0o777 == 0o700
    assert {blob.read_text() for blob in blobs.iterdir()} == {"one\ntwo\nthree\n", "one\n2\nthree\n"}


def test_sessions_are_listed_and_shown(user: User, project: Path) -> None:
    assert user.agent("sessions", "list").stdout == "(no sessions)\n"
    run_script(user, project, *one_step(edit("two", "2"), step_reply("s1", "done")), session="first")
    run_script(user, project, *one_step(edit("one", "1"), step_reply("s1", "done")), session="second")
    rows = json.loads(user.agent("sessions", "list", "--json").stdout)
    assert [row["id"] for row in rows] == ["second", "first"]
    assert (rows[0]["runs"], rows[0]["cwd"], rows[0]["last_request"]) == (1, str(project), "change it")
    shown = user.agent("sessions", "show", "sec").stdout
    assert "second" in shown
    assert "answer    done" in shown
    assert json.loads(user.agent("sessions", "show", "first", "--json").stdout)["id"] == "first"
    (user.data / "sessions" / "first" / "SESSION.json").write_text("{broken")
    assert "answer    done" in user.agent("sessions", "show", "first").stdout


@pytest.mark.parametrize("words", [("show", "nope"), ("diff", "nope"), ("undo", "nope", "--yes"), ("show", "../x")])
def test_an_unknown_session_is_an_error_and_is_not_created(user: User, words: tuple[str, ...]) -> None:
    ended = user.agent("sessions", *words)
    assert (ended.exit_code, "there is no session" in ended.stderr) == (42, True)
    assert not (user.data / "sessions").exists()


def test_fsck_reports_and_repairs_problems_and_exits_with_1(user: User) -> None:
    user.agent("run", "hi", "--model", HELLO, "--session", "good")
    user.agent("run", "hi", "--model", HELLO, "--session", "bad")
    assert user.agent("sessions", "fsck").exit_code == 0
    log = user.data / "sessions/bad/events.jsonl"
    log.write_bytes(log.read_bytes() + b'{"torn')
    checked = user.agent("sessions", "fsck", "--dry-run", "--json")
    assert checked.exit_code == 1
    problems = {row["session"]: row["problems"] for row in json.loads(checked.stdout)}
    assert problems["good"] == []
    assert problems["bad"] == [{"path": "events.jsonl:9", "what": INVALID_LINE, "is_mended": False}]
    repaired = user.agent("sessions", "fsck", "bad")
    assert (repaired.exit_code, repaired.stdout) == (1, f"bad  events.jsonl:9  {INVALID_LINE}  (repaired)\n")
    assert fsck_summary(1, 1, 1) in repaired.stderr
    assert user.agent("sessions", "fsck", "bad").exit_code == 0
