"""`agent --worktree`: the prompt in a git worktree of its own, merged at any time, kept or discarded on leaving."""

from pathlib import Path

import pytest

from agent.workspace.worktrees import NOT_A_REPOSITORY
from cli.repl.commands.session_commands import NO_WORKTREE
from cli.run.worktree_choice import UNCHANGED
from tests.cli.repl.terminal_session import OpenTerminal, ctrl
from tests.cli.run.test_worktrees import git, tree_of
from tests.cli.terminal_user import User, lead_call, lead_reply

pytestmark = [pytest.mark.slow, pytest.mark.needs("git", "bwrap")]


@pytest.fixture
def project(user: User) -> Path:
    folder = user.home / "project"
    folder.mkdir(exist_ok=True)
    git(user, "init", "-q", "-b", "main", folder="project")
    (folder / "a.txt").write_text("one\n")
    git(user, "add", "-A", folder="project")
    git(user, "commit", "-qm", "first", folder="project")
    return folder


def test_requests_change_the_worktree_until_it_is_merged(
    open_terminal: OpenTerminal, user: User, project: Path
) -> None:
    terminal = open_terminal(
        *(
            {
                **lead_call("write_file", path="a.txt", content=f"{text}\n"),
                "match": {"purpose": "lead", "contains": f"make it {text}"},
            }
            for text in ("three", "two")
        ),
        lead_reply("It is changed."),
        words=("--worktree=fix",),
        AGENT_PLANNING="auto",
        columns=200,
    )
    terminal.wait_for("~/project · worktree fix")
    terminal.send_line("make it two")
    terminal.wait_for("It is changed.")
    assert (project / "a.txt").read_text() == "one\n"
    terminal.send_line("/worktree")
    terminal.wait_for("+two")
    terminal.send_line("/worktree merge")
    terminal.wait_for("merged agent/fix into ~/project")
    assert (project / "a.txt").read_text() == "two\n"
    terminal.send_line("make it three")
    terminal.wait_until(lambda: terminal.full_text().count("It is changed.") == 2, "the second answer")
    terminal.send(ctrl("d"))
    shown = terminal.wait_for("[merge/keep/discard]")
    assert "resume with: agent -r" in shown
    terminal.send_line("merge")
    assert terminal.wait_exit() == 0
    assert (project / "a.txt").read_text() == "three\n"
    titles = git(user, "log", "--format=%s", folder="project").split("\n")
    assert titles[:3] == ["make it three", "make it two", "first"]
    assert git(user, "branch", "--format=%(refname:short)", folder="project") == "main\n"


def test_a_session_in_a_worktree_is_resumed_there(open_terminal: OpenTerminal, user: User, project: Path) -> None:
    terminal = open_terminal(
        lead_call("write_file", path="a.txt", content="two\n"),
        lead_reply("Two it is."),
        words=("make it two", "--worktree=fix"),
        AGENT_PLANNING="auto",
    )
    terminal.wait_for("Two it is.")
    terminal.send(ctrl("d"))
    terminal.wait_for("[merge/keep/discard]")
    terminal.send("\r")
    terminal.wait_for("agent worktrees diff fix")
    assert terminal.wait_exit() == 0
    (session,) = [path.name for path in (user.data / "sessions").iterdir()]
    again = open_terminal(words=("-r", session), AGENT_PLANNING="auto", columns=200)
    again.wait_for("~/project · worktree fix")
    again.send(ctrl("d"))
    again.wait_for("[merge/keep/discard]")
    again.send_line("discard")
    assert again.wait_exit() == 0
    assert not tree_of(user, "fix").exists() and (project / "a.txt").read_text() == "one\n"


def test_a_prompt_without_changes_leaves_no_worktree(open_terminal: OpenTerminal, user: User, project: Path) -> None:
    terminal = open_terminal(words=("--worktree",))
    terminal.wait_ready()
    terminal.send(ctrl("d"))
    terminal.wait_for(UNCHANGED[:30])
    assert terminal.wait_exit() == 0
    assert git(user, "branch", "--format=%(refname:short)", folder="project") == "main\n"


def test_without_a_repository_or_a_worktree_it_is_said(open_terminal: OpenTerminal, user: User) -> None:
    terminal = open_terminal(words=("--worktree",), columns=120)
    terminal.wait_for(NOT_A_REPOSITORY)
    assert terminal.wait_exit() == 2
    terminal = open_terminal(columns=120)
    terminal.wait_ready()
    terminal.send_line("/worktree")
    terminal.wait_for(NO_WORKTREE)
