"""Without a name, `-c` and `resume` take what belongs to the current folder, and say so."""

from pathlib import Path

import pytest

from cli.run.resume_target import NEWER_HERE, NONE_HERE, NOT_RESUMED
from tests.agent.sessions.past_runs import completed_run, run_start, write_run
from tests.cli.pty_terminal import PtyTerminal
from tests.cli.terminal_user import ProgramResult, User, answer

pytestmark = pytest.mark.slow

OLD = 1_000_000_000.0


@pytest.fixture
def folders(user: User) -> tuple[Path, Path]:
    """Two projects; the second one was used last."""
    first, second = user.home / "first", user.home / "second"
    first.mkdir()
    second.mkdir()
    return first, second


def session_of(ended: ProgramResult) -> object:
    assert ended.exit_code == 0, ended.stderr
    return ended.events[0]["session_id"]


def continue_last(user: User, folder: Path, *words: str) -> ProgramResult:
    return user.agent("run", "-c", "go on", "--model", user.script(answer("yes")), *words, cwd=folder)


def test_the_last_session_is_that_of_the_current_folder(user: User, folders: tuple[Path, Path]) -> None:
    for number, folder in enumerate(folders):
        write_run(user.data, folder.name, completed_run("tidy up", cwd=str(folder)), mtime=OLD + number)
    streamed = ("--output-format", "stream-json")
    assert session_of(continue_last(user, folders[0], *streamed)) == "first"
    assert session_of(continue_last(user, folders[1], *streamed)) == "second"
    said = continue_last(user, folders[0]).stderr
    assert said.startswith("session first: last run-") and said.splitlines()[1] == "in ~/first"
    assert session_of(continue_last(user, user.home, *streamed, "-C", "second")) == "second"
    # A folder without sessions continues the last one of all.
    (user.home / "third").mkdir()
    said = continue_last(user, user.home / "third").stderr
    assert said.startswith("session second: last run-") and " in ~/second, " in said


def test_a_mere_plan_is_not_the_last_session(user: User, folders: tuple[Path, Path]) -> None:
    write_run(user.data, "worked", completed_run(cwd=str(folders[0])), mtime=OLD)
    user.agent("plan", "think", "--session", "planned", "--model", user.script(answer("a plan")), cwd=folders[0])
    assert session_of(continue_last(user, folders[0], "--output-format", "stream-json")) == "worked"


def test_the_run_to_resume_is_that_of_the_current_folder(user: User, folders: tuple[Path, Path]) -> None:
    for number, folder in enumerate(folders):
        run = f"run-2025010112000{number}-aaaaaa"
        write_run(user.data, folder.name, run_start(str(folder), f"work on {folder.name}"), run=run, mtime=OLD + number)
    ended = user.agent("resume", "--model", user.script(answer("done")), cwd=folders[0])
    assert "last unfinished run: run-20250101120000-aaaaaa, " in ended.stderr and "work on first" in ended.stderr
    ended = user.agent("resume", "--model", user.script(answer("done")), cwd=folders[0])
    assert "run-20250101120001-aaaaaa in ~/second, " in ended.stderr


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_run_that_is_not_the_newest_is_asked_about(
    user: User, folders: tuple[Path, Path], *, is_elsewhere: bool
) -> None:
    first = str(folders[0])
    write_run(user.data, "old", run_start(first, "the old task"), run="run-20250101110000-aaaaaa", mtime=OLD)
    write_run(user.data, "new", completed_run(cwd=first), run="run-20250101120000-aaaaaa", mtime=OLD + 1)
    folder = "second" if is_elsewhere else "first"
    terminal = PtyTerminal(user, "resume", "-C", folder, "--model", user.script(answer("done")))
    terminal.wait_for(NONE_HERE if is_elsewhere else NEWER_HERE)
    terminal.wait_for("the old task")
    terminal.send_line("n")
    terminal.wait_for(NOT_RESUMED)
    assert terminal.wait_exit()[0] == 1
