"""Output files are written where the user said, not where a planted symlink leads."""

from pathlib import Path

import pytest

from tests.cli.terminal_user import User, answer, one_step, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow

PROFILE = "# runs at every login\n"


@pytest.fixture
def folder(user: User) -> Path:
    (user.home / ".profile").write_text(PROFILE)
    (user.home / "project").mkdir()
    return user.home / "project"


def symlink_script(link: str, target: Path) -> tuple[dict[str, object], ...]:
    """Script a model that plants a symlink from a program, which no rule can see through, and then answers."""
    program = f"import os\nos.symlink({str(target)!r}, {link!r})\n"
    return one_step(
        step_call("s1", "write_file", path="make.py", content=program),
        step_call("s1", "run_command", command="python3 make.py"),
        step_reply("s1", "touch /tmp/it-ran"),
    )


@pytest.mark.parametrize(
    ("output", "link", "target"), [("answer.txt", "answer.txt", ".profile"), ("out/.profile", "out", "")]
)
def test_a_symlink_created_by_the_run_does_not_redirect_the_answer(
    user: User, folder: Path, output: str, link: str, target: str
) -> None:
    model = user.script(*symlink_script(link, user.home / target))
    words = ("run", "x", "-C", ".", "--approval-mode", "auto-edit", "--model", model, "-o", output)
    if "/" in output:
        # The folder exists when the run starts; the model's program removes it first.
        (folder / "out").mkdir()
        model_program = user.home / "script.jsonl"
        model_program.write_text(model_program.read_text().replace("import os", "import os; os.rmdir('out')"))
    ended = user.agent(*words, cwd=folder)
    assert (folder / link).is_symlink(), ended.stderr
    assert (user.home / ".profile").read_text() == PROFILE
    assert ended.exit_code == 1
    assert "symbolic link" in ended.stderr
    assert "touch /tmp/it-ran" in ended.stdout


def test_plans_and_exports_are_not_written_through_a_symlink_in_the_repository(user: User, folder: Path) -> None:
    for name in ("notes.md", "plan.toml"):
        (folder / name).symlink_to(user.home / ".profile")
    planned = user.agent("plan", "x", "--model", user.script(plan(step("a"))), "--save", "plan.toml", cwd=folder)
    assert planned.exit_code == 1
    user.agent("run", "x", "--session", "s", "--model", user.script(answer("hello")), cwd=folder)
    exported = user.agent("sessions", "export", "s", "-o", "notes.md", cwd=folder)
    assert exported.exit_code == 42
    assert "symbolic link" in exported.stderr
    assert (user.home / ".profile").read_text() == PROFILE


def test_symlinks_of_the_user_and_the_system_are_followed(user: User, folder: Path) -> None:
    (user.home / "answers").mkdir()
    (user.home / "latest").symlink_to(user.home / "answers")
    model = user.script(answer("hello"))
    path = user.home / "latest" / "answer.txt"
    assert user.agent("run", "x", "--model", model, "-o", str(path), cwd=folder).exit_code == 0
    assert (user.home / "answers" / "answer.txt").read_text() == "hello\n"
    assert user.agent("run", "x", "-q", "--model", model, "-o", "/dev/stdout", cwd=folder).stdout == "hello\nhello\n"


@pytest.mark.parametrize("link", ["link", "folder/link"])
@pytest.mark.parametrize("flag", ["-i", "-f", "--record", "--output-schema"])
def test_files_of_flags_are_not_taken_or_written_through_a_link_out_of_the_folder(
    user: User, folder: Path, flag: str, link: str
) -> None:
    secret = user.home / "elsewhere" / "link"
    secret.parent.mkdir()
    secret.write_text("secret: 4711\n")
    (folder / "link").symlink_to(secret)
    (folder / "folder").symlink_to(secret.parent)
    model = user.script(answer("hello"))
    ended = user.agent("run", "x", "-C", ".", "--model", model, flag, link, cwd=folder)
    assert ended.exit_code == 42, ended.stderr
    assert "symbolic link leads to" in ended.stderr
    assert "4711" not in ended.stdout + ended.stderr
    assert secret.read_text() == "secret: 4711\n"
    assert not (folder / "input").exists()


def test_links_within_the_folder_and_of_the_user_elsewhere_are_read(user: User, folder: Path) -> None:
    (folder / "real.txt").write_text("a\n")
    (folder / "link.txt").symlink_to("real.txt")
    (user.home / "mine.txt").symlink_to(folder / "real.txt")
    model = user.script(answer("hello"))
    words = ("-i", "link.txt", "-f", str(user.home / "mine.txt"))
    assert user.agent("run", "x", "-C", ".", "--model", model, *words, cwd=folder).exit_code == 0
    assert (folder / "input" / "link.txt").read_text() == "a\n"
