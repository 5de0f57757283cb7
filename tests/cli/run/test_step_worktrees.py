"""`--worktree` with a plan: each step that writes has a git worktree of its own, and no change is ever lost."""

from pathlib import Path

import pytest

from agent.workspace.worktrees import CONFLICTS
from tests.cli.run.test_worktrees import git, project, tree_of
from tests.cli.terminal_user import (
    ProgramResult,
    User,
    composer_reply,
    hand_out,
    lead_call,
    lead_reply,
    plan,
    step,
    step_call,
    step_reply,
)

pytestmark = [pytest.mark.slow, pytest.mark.needs("git", "bwrap")]
__all__ = ["project"]


def run(user: User, *replies: dict[str, object], mode: str = "always") -> ProgramResult:
    words = ("run", "change it", "--planning", mode, "--model", user.script(*replies), "--worktree=w")
    return user.agent(*words, "--approval-mode", "yolo", cwd=user.home / "proj")


def command(name: str, line: str) -> dict[str, object]:
    return step_call(name, "run_command", command=line)


def test_each_writing_step_works_in_its_own_worktree_and_is_merged(user: User, project: Path) -> None:
    ended = run(
        user,
        plan(step("s1"), step("s2"), step("s3", "s1", "s2")),
        step_call("s1", "write_file", path="one.txt", content="1\n"),
        command("s1", "ls > seen1; pwd > place1"),
        step_reply("s1", "Done."),
        step_call("s2", "write_file", path="two.txt", content="2\n"),
        command("s2", "pwd > place2"),
        step_reply("s2", "Done."),
        command("s3", "cat one.txt two.txt > both.txt; git log --oneline | wc -l > commits"),
        step_reply("s3", "Done."),
        composer_reply("All done."),
    )
    assert (ended.exit_code, ended.stdout) == (0, "All done.\n"), ended.stderr
    tree = tree_of(user, "w")
    assert (tree / "both.txt").read_text() == "1\n2\n"
    places = {(tree / name).read_text().strip() for name in ("place1", "place2")}
    assert places == {str(user.data / "worktrees" / "w.steps" / f"w-{name}" / "tree") for name in ("s1", "s2")}
    assert "two.txt" not in (tree / "seen1").read_text()
    assert int((tree / "commits").read_text()) >= 3
    assert git(user, "branch", "--format=%(refname:short)").split() == ["agent/w", "main"]
    assert user.agent("worktrees", "list").stdout.split()[0] == "w"
    assert "both.txt" in ended.stderr and not (project / "both.txt").exists()
    merged = user.agent("worktrees", "merge", "w")
    assert merged.exit_code == 0, merged.stderr
    assert (project / "both.txt").read_text() == "1\n2\n"
    assert not list((user.data / "worktrees").iterdir())


def test_steps_that_conflict_are_reported_and_both_changes_are_kept(user: User, project: Path) -> None:
    ended = run(
        user,
        plan(step("s1"), step("s2")),
        command("s1", "echo from-s1 > a.txt"),
        step_reply("s1", "Done."),
        command("s2", "echo from-s2 > a.txt"),
        step_reply("s2", "Done."),
        composer_reply("Partly done."),
    )
    assert ended.exit_code == 1
    names = user.agent("worktrees", "list").stdout
    (kept,) = [name for name in ("w-s1", "w-s2") if name in names]
    assert f"{CONFLICTS}: a.txt" in ended.stderr
    assert f"agent worktrees diff {kept} | merge {kept} | discard {kept}" in ended.stderr
    other = "from-s1\n" if kept == "w-s2" else "from-s2\n"
    assert (tree_of(user, "w") / "a.txt").read_text() == other
    assert git(user, "show", f"agent/{kept}:a.txt") == f"from-{kept[2:]}\n"
    assert user.agent("worktrees", "merge", "w").exit_code == 0
    # What was left over now belongs to the branch of the user.
    refused = user.agent("worktrees", "merge", kept)
    assert (refused.exit_code, "git merge agent/" in refused.stderr) == (1, True)
    assert git(user, "show", f"agent/{kept}:a.txt") == f"from-{kept[2:]}\n"
    assert user.agent("worktrees", "discard", kept, "--yes").exit_code == 0
    assert git(user, "branch", "--format=%(refname:short)") == "main\n"


def test_what_a_failed_step_did_is_kept_apart(user: User, project: Path) -> None:
    ended = run(
        user,
        plan(step("s1"), step("s2")),
        # The script has no further reply for it.
        step_call("s1", "write_file", path="half.txt", content="half\n"),
        step_call("s2", "write_file", path="good.txt", content="good\n"),
        step_reply("s2", "Done."),
        composer_reply("Partly done."),
    )
    assert ended.exit_code == 1
    tree = tree_of(user, "w")
    assert (tree / "good.txt").exists() and not (tree / "half.txt").exists()
    assert git(user, "show", "agent/w-s1:half.txt") == "half\n"
    assert "agent worktrees diff w-s1" in ended.stderr
    user.script(command("s1", "cat half.txt > whole.txt"), step_reply("s1", "Done."), composer_reply("All done."))
    resumed = user.agent("resume", "--approval-mode", "yolo", cwd=project)
    assert resumed.exit_code == 0, resumed.stderr
    assert (tree / "whole.txt").read_text() == "half\n"
    assert git(user, "branch", "--format=%(refname:short)").split() == ["agent/w", "main"]


def test_steps_of_the_lead_see_what_it_did_and_what_git_ignores(user: User, project: Path) -> None:
    (project / ".gitignore").write_text("build/\n.cache\n")
    git(user, "add", "-A")
    git(user, "commit", "-qm", "ignore")
    ended = run(
        user,
        lead_call("run_command", command="echo lead > lead.txt"),
        hand_out(step("s1"), step("s2", "s1")),
        command("s1", "cat lead.txt; mkdir build && echo built > build/out; echo c > .cache"),
        step_reply("s1", "Built."),
        command("s2", "cat build/out .cache lead.txt > seen.txt"),
        step_reply("s2", "Seen."),
        lead_reply("Done."),
        mode="auto",
    )
    assert ended.exit_code == 0, ended.stderr
    tree = tree_of(user, "w")
    assert (tree / "seen.txt").read_text() == "built\nc\nlead\n"
    assert (tree / "build" / "out").read_text() == "built\n"


def test_what_a_step_changed_can_be_seen_and_undone(user: User, project: Path) -> None:
    ended = run(
        user,
        plan(step("s1")),
        step_call("s1", "write_file", path="one.txt", content="1\n"),
        command("s1", "echo changed > a.txt"),
        step_reply("s1", "Done."),
        composer_reply("Done."),
    )
    assert ended.exit_code == 0, ended.stderr
    (session,) = [path.name for path in (user.data / "sessions").iterdir()]
    shown = user.agent("sessions", "diff", session).stdout
    assert "+changed" in shown and "one.txt" in shown
    assert "+changed" in user.agent("runs", "why", "last", "s1").stdout
    undone = user.agent("sessions", "undo", session, "--yes")
    assert undone.exit_code == 0, undone.stderr
    assert (tree_of(user, "w") / "a.txt").read_text() == "one\n"
    assert not (tree_of(user, "w") / "one.txt").exists()


def test_a_step_that_only_reads_has_no_worktree_of_its_own(user: User, project: Path) -> None:
    reading = step("s1", allowed_tools=["read_file"])
    ended = run(
        user,
        plan(reading),
        step_call("s1", "read_file", path="a.txt"),
        step_reply("s1", "It says one."),
        composer_reply("One."),
    )
    assert ended.exit_code == 0, ended.stderr
    assert not list((user.data / "worktrees").glob("w.steps/*"))
