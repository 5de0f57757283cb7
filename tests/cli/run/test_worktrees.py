"""`--worktree`: a run in a git worktree of its own, merged or discarded afterwards, and no change is ever lost."""

import subprocess
from pathlib import Path

import pytest

from agent.workspace.git_command import RUNS_PROGRAMS
from agent.workspace.worktrees import CONFLICTS, NO_COMMIT, NOT_A_REPOSITORY
from cli.run.worktree_choice import UNCHANGED
from tests.cli.pty_terminal import PtyTerminal
from tests.cli.terminal_user import ProgramResult, User, lead_call, lead_reply

pytestmark = [pytest.mark.slow, pytest.mark.needs("git", "bwrap")]
AUTO = ("--planning", "auto")


def git(user: User, *words: str, folder: str = "proj") -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(
        ["git", *identity, *words], cwd=user.home / folder, env=user.environment(), check=True, capture_output=True
    )
    return done.stdout.decode()


@pytest.fixture
def project(user: User) -> Path:
    """A repository with one commit."""
    folder = user.home / "proj"
    (folder / "sub").mkdir(parents=True)
    git(user, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    (folder / "sub" / "b.txt").write_text("b\n")
    git(user, "add", "-A")
    git(user, "commit", "-qm", "first")
    return folder


def run(user: User, *words: str, content: str = "two\n", cwd: str = "proj") -> ProgramResult:
    """Run a task that changes a.txt and adds a file."""
    model = user.script(
        lead_call("write_file", path="new.txt", content="new\n"),
        lead_call("write_file", path="a.txt", content=content),
        lead_reply("Done."),
    )
    return user.agent("run", "change it", *AUTO, "--model", model, *words, cwd=user.home / cwd)


def tree_of(user: User, name: str) -> Path:
    return user.data / "worktrees" / name / "tree"


def test_the_very_first_run_of_a_user_may_be_in_a_worktree(user: User, project: Path) -> None:
    model = user.script(lead_call("write_file", path="new.txt", content="new\n"), lead_reply("Done."))
    data = user.home.with_name("new") / ".local" / "share" / "agent"
    words = ("run", "change it", *AUTO, "--model", model, "--worktree=fix")
    ended = user.agent(*words, cwd=project, AGENT_SANDBOX=str(data))
    assert (ended.exit_code, ended.stdout) == (0, "Done.\n"), ended.stderr
    assert (data / "worktrees" / "fix" / "tree" / "new.txt").read_text() == "new\n"


def test_a_worktree_without_changes_says_so(user: User, project: Path) -> None:
    run(user, "--worktree=fix")
    git(user, "merge", "-q", "agent/fix")
    assert user.agent("worktrees", "merge", "--keep", "fix").exit_code == 0
    shown = user.agent("worktrees", "diff", "fix")
    assert (shown.stdout, shown.stderr) == ("", "no changes\n")


def test_a_run_changes_only_its_worktree_until_it_is_merged(user: User, project: Path) -> None:
    ended = run(user, "--worktree=fix")
    assert (ended.exit_code, ended.stdout) == (0, "Done.\n"), ended.stderr
    lines = ended.stderr.splitlines()
    assert lines[0] == f"in worktree fix of ~/proj: {tree_of(user, 'fix')}"
    assert " 2 files changed, 2 insertions(+), 1 deletion(-)" in lines
    assert lines[-1] == "on branch agent/fix; agent worktrees diff fix | merge fix | discard fix"
    assert (project / "a.txt").read_text() == "one\n" and not (project / "new.txt").exists()
    assert git(user, "log", "-1", "--format=%s", "agent/fix") == "change it\n"
    assert user.agent("worktrees", "list").stdout.split()[:2] == ["fix", "~/proj"]
    assert "+two" in user.agent("worktrees", "diff", "fix").stdout
    merged = user.agent("worktrees", "merge", "fix")
    assert merged.exit_code == 0, merged.stderr
    assert (project / "a.txt").read_text() == "two\n" and (project / "new.txt").exists()
    assert git(user, "branch", "--format=%(refname:short)") == "main\n"
    assert git(user, "worktree", "list").count("\n") == 1
    assert user.agent("worktrees", "list").stdout == "(no worktrees)\n"


def test_without_a_name_one_is_chosen_and_the_next_word_is_the_task(user: User, project: Path) -> None:
    model = user.script(lead_call("write_file", path="x", content="x"), lead_reply("Done."))
    ended = user.agent("run", "--model", model, *AUTO, "--worktree", "add x", cwd=project)
    assert ended.exit_code == 0, ended.stderr
    (name,) = [path.parent.name for path in (user.data / "worktrees").glob("*/worktree.json")]
    assert git(user, "log", "-1", "--format=%s", f"agent/{name}") == "add x\n"


def test_uncommitted_changes_stay_with_the_user(user: User, project: Path) -> None:
    (project / "a.txt").write_text("mine\n")
    (project / "other.txt").write_text("mine too\n")
    run(user, "--worktree=w")
    refused = user.agent("worktrees", "merge", "w")
    assert (refused.exit_code, "would be overwritten" in refused.stderr) == (1, True)
    assert (project / "a.txt").read_text() == "mine\n" and (project / "other.txt").exists()
    assert tree_of(user, "w").joinpath("a.txt").read_text() == "two\n"
    git(user, "stash", "-q")
    assert user.agent("worktrees", "merge", "w").exit_code == 0
    assert (project / "other.txt").read_text() == "mine too\n"


def test_conflicts_are_reported_and_nothing_is_lost(user: User, project: Path) -> None:
    run(user, "--worktree=w")
    (project / "a.txt").write_text("three\n")
    git(user, "commit", "-qam", "meanwhile")
    refused = user.agent("worktrees", "merge", "w")
    assert (refused.exit_code, f"{CONFLICTS}: a.txt" in refused.stderr) == (1, True)
    assert "git merge agent/w" in refused.stderr
    assert git(user, "status", "--porcelain") == ""
    assert tree_of(user, "w").joinpath("a.txt").read_text() == "two\n"


def test_what_is_discarded_can_be_taken_back(user: User, project: Path) -> None:
    run(user, "--worktree=w")
    assert user.agent("worktrees", "discard", "w").exit_code == 2
    ended = user.agent("worktrees", "discard", "w", "--yes")
    assert not tree_of(user, "w").exists()
    git(user, *ended.stderr.strip().partition("to take it back: git ")[2].split())
    assert git(user, "show", "agent/w:a.txt") == "two\n"


def test_a_worktree_is_used_again_and_survives_the_removal_of_sessions(user: User, project: Path) -> None:
    run(user, "--worktree=w")
    run(user, "--worktree=w", content="again\n", cwd="proj/sub")
    assert tree_of(user, "w").joinpath("sub/a.txt").read_text() == "again\n"
    user.agent("sessions", "gc", "--keep", "0", "--older-than", "0d", "--yes")
    assert user.agent("sessions", "list").stdout == "(no sessions)\n"
    assert tree_of(user, "w").joinpath("a.txt").read_text() == "two\n"
    (user.home / "other").mkdir()
    git(user, "init", "-q", folder="other")
    git(user, "commit", "-q", "--allow-empty", "-m", "x", folder="other")
    assert run(user, "--worktree=w", cwd="other").exit_code == 2


def test_a_worktree_without_changes_is_removed(user: User, project: Path) -> None:
    model = user.script(lead_reply("Nothing to do."))
    ended = user.agent("run", "look", *AUTO, "--model", model, "--worktree=w", cwd=project)
    assert UNCHANGED in ended.stderr
    assert git(user, "branch", "--format=%(refname:short)") == "main\n"


def test_commands_in_a_worktree_can_ask_git_and_cannot_change_the_repository(user: User, project: Path) -> None:
    model = user.script(
        lead_call("run_command", command="git log --oneline | wc -l; git status --short"),
        lead_call("run_command", command=f"touch {project}/.git/planted"),
        lead_reply("Done."),
    )
    words = ("run", "look", *AUTO, "--model", model, "--worktree=w", "--output-format", "json")
    ended = user.agent(*words, "--approval-mode", "yolo", cwd=project)
    first, second = ended.document["step_results"][0]["tool_calls"]  # type: ignore[index]
    assert first["output_preview"].strip() == "1"
    assert not (project / ".git" / "planted").exists()
    assert second["exit_code"] != 0


def test_what_a_repository_names_is_not_run(user: User, project: Path) -> None:
    ran = user.home / "ran"
    hooks = project / ".git" / "hooks"
    for name in ("post-checkout", "pre-commit", "post-commit", "post-merge", "pre-merge-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (hooks / name).chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "core.pager"):
        git(user, "config", name, f"touch {ran}")
    run(user, "--worktree=w")
    user.agent("worktrees", "diff", "w")
    assert user.agent("worktrees", "merge", "w").exit_code == 0
    assert not ran.exists()
    git(user, "config", "filter.x.clean", f"touch {ran}")
    ended = run(user, "--worktree=w2")
    assert (ended.exit_code, RUNS_PROGRAMS in ended.stderr, ran.exists()) == (2, True, False)


def test_a_repository_made_by_the_run_is_kept_and_not_asked(user: User, project: Path) -> None:
    inner = "git init -q inner && cd inner && git config filter.x.clean 'touch ran' && echo hi > f"
    model = user.script(lead_call("run_command", command=inner), lead_reply("Done."))
    ended = user.agent("run", "x", *AUTO, "--model", model, "--worktree=w", "--approval-mode", "yolo", cwd=project)
    assert "contains other repositories: inner/" in ended.stderr
    assert user.agent("worktrees", "discard", "w", "--yes").exit_code == 1
    assert tree_of(user, "w").joinpath("inner/f").exists()


def test_a_folder_without_a_repository_is_a_usage_error(user: User) -> None:
    (user.home / "plain").mkdir()
    ended = run(user, "--worktree", cwd="plain")
    assert (ended.exit_code, NOT_A_REPOSITORY in ended.stderr) == (2, True)
    git(user, "init", "-q", folder="plain")
    ended = run(user, "--worktree", cwd="plain")
    assert (ended.exit_code, NO_COMMIT in ended.stderr) == (2, True)
    for words in (("--worktree=../x",), ("--worktree=a b",), ("--worktree", "--scratch"), ("--worktree", "-c")):
        assert run(user, *words, cwd="plain").exit_code == 2


@pytest.mark.parametrize("choice", ["merge", "discard", ""])
def test_on_a_terminal_the_user_chooses(user: User, project: Path, choice: str) -> None:
    model = user.script(lead_call("write_file", path="a.txt", content="two\n"), lead_reply("Done."))
    terminal = PtyTerminal(user, "run", "change", *AUTO, "--model", model, "--worktree=w", "-C", "proj")
    terminal.wait_for("[merge/keep/discard]")
    terminal.send_line(choice)
    assert terminal.wait_exit()[0] == 0
    assert (project / "a.txt").read_text() == ("two\n" if choice == "merge" else "one\n")
    assert tree_of(user, "w").exists() == (choice == "")


def test_a_run_that_did_not_finish_is_resumed_in_its_worktree(user: User, project: Path) -> None:
    model = user.script(lead_call("write_file", path="a.txt", content="half\n"))
    failed = user.agent("run", "change it", *AUTO, "--model", model, "--worktree=w", cwd=project)
    assert failed.exit_code == 1
    assert git(user, "show", "agent/w:a.txt") == "half\n"
    user.script(lead_call("write_file", path="a.txt", content="whole\n"), lead_reply("Done."))
    ended = user.agent("resume", cwd=project, AGENT_PLANNING="auto")
    assert (ended.exit_code, "in worktree w of ~/proj: " in ended.stderr) == (0, True), ended.stderr
    assert "on branch agent/w; " in ended.stderr
    assert (git(user, "show", "agent/w:a.txt"), (project / "a.txt").read_text()) == ("whole\n", "one\n")
