"""The example plans run in the sandbox and do what their descriptions say."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.pty_terminal import PtyTerminal
from tests.cli.terminal_user import ProgramResult, User, composer_reply, step_call, step_reply
from tests.house.source_tree import ROOT
from tests.programs import require

pytestmark = pytest.mark.slow
EXAMPLES = ROOT / "examples"


@pytest.fixture
def project(user: User) -> Path:
    """A small project under version control."""
    require("git")
    folder = user.home / "project"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "__init__.py").write_text("def one():\n    return 1  # TODO: two\n")
    (folder / "test_pkg.py").write_text(
        "import unittest\n\nfrom pkg import one\n\n\nclass T(unittest.TestCase):\n"
        "    def test_one(self):\n        self.assertEqual(one(), 1)\n"
    )
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "the first words")):
        named = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", *named, *words], cwd=folder, env=user.environment(), check=True)
    return folder


def run(user: User, name: str, *words: str) -> ProgramResult:
    return user.agent("run", "--plan", str(EXAMPLES / name), *words)


def test_the_project_report_describes_the_repository(user: User, project: Path) -> None:
    (project / "new.txt").write_text("x")
    ended = run(user, "project-report.toml", "-C", str(project))
    assert ended.exit_code == 0, ended.stderr
    for expected in ("2 py", "8 test_pkg.py", "__init__.py:2:", "the first words", "1\tAda", "?? new.txt"):
        assert expected in ended.stdout


def test_the_python_check_builds_a_package_if_all_checks_pass(user: User, project: Path) -> None:
    ended = run(user, "check-python.toml", "-C", str(project), "--output-format", "json")
    assert ended.exit_code == 0, ended.stderr
    assert [one["verified"] for one in ended.document["step_results"]] == [None, None, None, True]  # type: ignore[attr-defined]
    assert (project / "dist" / "sources.tar.gz").is_file()


def test_the_python_check_builds_nothing_if_a_check_fails(user: User, project: Path) -> None:
    (project / "test_pkg.py").write_text("import unittest\n\n\nclass T(unittest.TestCase):\n    x = 1 \n")
    (project / "broken.py").write_text("def")
    ended = run(user, "check-python.toml", "-C", str(project))
    assert ended.exit_code == 54
    assert "SyntaxError" in ended.stdout and "./test_pkg.py:5:    x = 1 " in ended.stdout
    assert "Not run: needs" in ended.stdout and not (project / "dist").exists()


def test_the_log_digest_joins_its_parts(user: User) -> None:
    lines = [
        "2026-01-01T10:00:01 INFO start",
        "2026-01-01T10:00:05 ERROR: disk 5 full",
        "2026-01-01T11:09 ERROR: disk 7 full",
    ]
    (user.home / "app.log").write_text("\n".join(lines))
    ended = run(user, "log-digest.toml", "-i", "app.log", "--session", "log")
    assert ended.exit_code == 0, ended.stderr
    digest = (user.data / "sessions" / "log" / "workspace" / "digest.md").read_text()
    assert "2 ERROR" in digest and "2 disk N full" in digest and "2 2026-01-01T10" in digest


def test_the_release_notes_plan_asks_and_writes(user: User, project: Path) -> None:
    model = user.script(
        step_call("notes", "write_file", path="RELEASE-NOTES.md", content="- one is there\n"),
        step_reply("notes", "Written."),
        composer_reply("The notes are in RELEASE-NOTES.md."),
    )
    file = str(EXAMPLES / "release-notes.toml")
    words = ("run", "--plan", file, "-C", str(project), "--model", model, "--approval-mode", "auto-edit", "--plain")
    terminal = PtyTerminal(user, *words, "--record", "tape.jsonl")
    terminal.wait_for("Who are the notes for?")
    terminal.wait_for("your answer: ")
    terminal.send_line("users")
    code, shown = terminal.wait_exit()
    assert (code, "The notes are in RELEASE-NOTES.md." in shown) == (0, True)
    tape = (user.home / "tape.jsonl").read_text()
    assert "the first words" in tape and "users" in tape


def test_every_example_is_listed_and_every_plan_says_how_to_try_it() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    for path in EXAMPLES.iterdir():
        assert path.name == "README.md" or f"]({path.name})" in listed, path.name
    for path in EXAMPLES.glob("*.toml"):
        assert f"# Try: agent run --plan examples/{path.name}" in path.read_text()
