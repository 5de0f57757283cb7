"""Where a run works: in the current folder if that is a project, and always in a folder that it names."""

import os
import subprocess
from pathlib import Path

import pytest

from agent.config.user_dirs import NO_CURRENT_FOLDER
from cli.run.work_folder import OWN_FOLDER, TEMPORARY_FOLDER, not_a_project
from tests.cli.terminal_user import User, answer, lead_call, lead_reply
from tests.programs import needs

EDITS = ("--approval-mode", "auto-edit", "--planning", "auto")


@pytest.fixture
def project(user: User) -> Path:
    folder = user.home / "proj"
    folder.mkdir()
    return folder


def writer(user: User) -> str:
    """Script a model that writes a file, and return its name."""
    return user.script(lead_call("write_file", path="note.txt", content="hello\n"), lead_reply("Wrote it."))


def first_line(text: str) -> str:
    return text.partition("\n")[0]


@pytest.mark.slow
@needs("bwrap")
def test_a_run_works_in_the_current_folder_and_says_so_first(user: User, project: Path) -> None:
    ended = user.agent("run", "note it", "--model", writer(user), *EDITS, cwd=project)
    assert first_line(ended.stderr) == "in ~/proj"
    assert (project / "note.txt").read_text() == "hello\n"
    assert "files: note.txt" in ended.stderr.splitlines()


@pytest.mark.slow
@needs("bwrap")
def test_edits_in_the_current_folder_need_approval_like_at_the_prompt(user: User, project: Path) -> None:
    ended = user.agent("run", "note it", "--model", writer(user), "--planning", "auto", cwd=project)
    assert not (project / "note.txt").exists()
    assert ended.exit_code == 57


@pytest.mark.slow
@needs("bwrap")
def test_a_scratch_run_works_in_an_empty_folder_and_says_where_its_files_are(user: User, project: Path) -> None:
    (project / "mine.txt").write_text("mine")
    words = ("run", "note it", "--scratch", "--session", "s", "--planning", "auto", "--model", writer(user))
    ended = user.agent(*words, cwd=project)
    workspace = user.data / "sessions" / "s" / "workspace"
    assert first_line(ended.stderr) == f"{OWN_FOLDER}: {workspace}"
    assert f"files in {workspace}: note.txt" in ended.stderr.splitlines()
    assert [path.name for path in workspace.iterdir()] == ["note.txt"]
    assert [path.name for path in project.iterdir()] == ["mine.txt"]


@pytest.mark.slow
@needs("bwrap")
def test_an_ephemeral_scratch_run_does_not_list_files_that_are_gone(user: User, project: Path) -> None:
    words = ("run", "note it", "--scratch", "--ephemeral", "--planning", "auto", "--model", writer(user))
    ended = user.agent(*words, cwd=project)
    assert ended.exit_code == 0
    assert first_line(ended.stderr) == TEMPORARY_FOLDER
    assert "files" not in ended.stderr
    document = user.agent(*words, "--output-format", "json", "-q", cwd=project).document
    assert document["artifacts"] == []


@pytest.mark.slow
@needs("bwrap")
def test_an_ephemeral_run_in_a_project_lists_the_files_it_left_there(user: User, project: Path) -> None:
    ended = user.agent("run", "note it", "--ephemeral", "--model", writer(user), *EDITS, cwd=project)
    assert "files: note.txt" in ended.stderr.splitlines()
    assert (project / "note.txt").exists()


@pytest.mark.slow
def test_a_run_in_the_home_folder_leaves_it_alone_and_says_why(user: User) -> None:
    ended = user.agent("run", "hi", "--session", "s", "--model", user.script(answer("hello")))
    workspace = user.data / "sessions" / "s" / "workspace"
    assert (
        first_line(ended.stderr)
        == f"{OWN_FOLDER}, because ~ is your home folder (-C . works there anyway): {workspace}"
    )
    named = user.agent("run", "hi", "--model", user.script(answer("hello")), "-C", ".")
    assert first_line(named.stderr) == "in ~"


@pytest.mark.slow
def test_a_session_continues_in_its_own_folder_wherever_it_is_called(user: User, project: Path) -> None:
    model = user.script(answer("hello"))
    user.agent("run", "hi", "--session", "here", "--model", model, cwd=project)
    user.agent("run", "hi", "--session", "apart", "--scratch", "--model", model, cwd=project)
    elsewhere = user.home / "other"
    elsewhere.mkdir()
    again = user.agent("run", "hi", "--session", "here", "--model", model, cwd=elsewhere)
    assert first_line(again.stderr) == "in ~/proj"
    again = user.agent("run", "hi", "--session", "apart", "--model", model, cwd=elsewhere)
    assert first_line(again.stderr).startswith(f"{OWN_FOLDER}: ")


@pytest.mark.slow
def test_quiet_runs_and_event_streams_say_nothing_of_their_folder(user: User, project: Path) -> None:
    model = user.script(answer("hello"))
    assert user.agent("run", "hi", "-q", "--model", model, cwd=project).stderr == ""
    streamed = user.agent("run", "hi", "--output-format", "stream-json", "--model", model, cwd=project)
    assert (streamed.stderr, streamed.events[0]["cwd"]) == ("", str(project))


@pytest.mark.slow
@pytest.mark.parametrize("other", [("--cd", "."), ("--continue",), ("--resume", "x")])
def test_scratch_excludes_another_folder(user: User, other: tuple[str, ...]) -> None:
    ended = user.agent("run", "hi", "--scratch", *other)
    assert (ended.exit_code, f"--scratch cannot be used with {other[0]}" in ended.stderr) == (2, True)


@pytest.mark.slow
def test_a_deleted_current_folder_is_named_as_the_problem(user: User, project: Path) -> None:
    program, model = " ".join(user.command()), user.script(answer("hello"))
    run = f"run hi --model {model}"
    commands = (run, f"{run} -C .", "exec -- ls", "check ls", "rules add -C . ls")
    lines = (f"{program} {words}; echo exit code $?" for words in commands)
    ended = subprocess.run(
        ["bash", "-c", "\n".join(('rmdir "$PWD"', *lines, f"{program} {run} --scratch -q"))],
        cwd=project, env=user.environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert errors == [f"error: {NO_CURRENT_FOLDER}"] * len(commands)
    assert ended.stdout == "exit code 42\n" * len(commands) + "hello\n"


@pytest.mark.slow
@needs("bwrap")
def test_an_ephemeral_run_needs_no_data_folder(user: User, project: Path) -> None:
    file = user.home / "a-file"
    file.write_text("")
    words = ("run", "note it", "--ephemeral", "--model", writer(user), *EDITS)
    # Neither folder can be created, whoever runs the test.
    for data in (file / "data", Path("/proc/data")):
        ended = user.agent(*words, cwd=project, AGENT_SANDBOX=str(data))
        assert (ended.exit_code, ended.stdout) == (0, "Wrote it.\n")
    assert user.agent("exec", "--", "echo hi", cwd=project, AGENT_SANDBOX=str(file / "data")).stdout == "hi\n"


def environ_of(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "AGENT_SANDBOX": str(home / "data"), "AGENT_CONFIG_DIR": str(home / "config")}


def test_an_ordinary_folder_is_a_project_with_or_without_git(tmp_path: Path) -> None:
    environ = environ_of(tmp_path / "home")
    for name in ("home/proj", "elsewhere", "repo/.git"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("home/proj", "elsewhere", "repo"):
        assert not_a_project(tmp_path / name, environ) == ""


def test_folders_that_are_no_project_are_recognised(tmp_path: Path) -> None:
    home, shared, locked = tmp_path / "home", tmp_path / "shared", tmp_path / "locked"
    environ = environ_of(home)
    for folder in (home / "data" / "sessions", home / "config", shared, locked):
        folder.mkdir(parents=True)
    shared.chmod(0o1777)
    locked.chmod(0o555)
    assert "is your home folder" in not_a_project(home, environ)
    assert "contains your home folder" in not_a_project(tmp_path, environ)
    assert "contains" in not_a_project(Path("/"), environ)
    assert "belongs to Windlass" in not_a_project(home / "data" / "sessions", environ)
    assert "belongs to Windlass" in not_a_project(home / "config", environ)
    assert "is shared by all users" in not_a_project(shared, environ)
    assert "is a system folder" in not_a_project(Path("/etc"), environ)
    assert "is a system folder" in not_a_project(Path("/usr/lib"), environ)
    if os.getuid():
        assert "cannot be written to" in not_a_project(locked, environ)
