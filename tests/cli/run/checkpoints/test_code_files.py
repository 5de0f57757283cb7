"""The end of a run names what commands left in the folder for other tools to run."""

import json
from pathlib import Path

import pytest

from cli.screen.format import WILL_RUN
from tests.cli.terminal_user import User, composer_reply, lead_call, lead_reply, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
YOLO = ("--approval-mode", "yolo")
LEAD = ("--planning", "auto")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".vscode").mkdir(parents=True)
    (folder / ".vscode" / "settings.json").write_text("{}\n")
    (folder / "Makefile").write_text("all:\n")
    (folder / "conftest.py").write_text("\n")
    (folder / "docs" / "example").mkdir(parents=True)
    (folder / "docs" / "example" / "tasks.json").write_text("{}\n")
    return folder


def run(user: User, project: Path, command: str, *flags: str) -> list[dict[str, str]]:
    """Run one command and return what the result says will run."""
    model = user.script(lead_call("run_command", command=command), lead_reply("done"))
    words = ("run", "x", *YOLO, *LEAD, "-C", str(project), "--model", model, "--output-format", "json", *flags)
    ended = user.agent(*words)
    assert ended.exit_code == 0, ended.stderr
    found: list[dict[str, str]] = json.loads(ended.stdout)["will_run"]
    return found


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("echo x > .envrc; echo notes > notes.md", [".envrc"]),
        ("mkdir -p a/.github/workflows; echo x > a/.github/workflows/ci.yml", ["a/.github/workflows/ci.yml"]),
        ("echo x >> Makefile; touch conftest.py", ["Makefile"]),
        ("chmod +x conftest.py", ["conftest.py"]),
        # What git ignores is run as well.
        ("printf '.vscode\\n.idea\\n' > .gitignore; echo x > .vscode/tasks.json", [".vscode/tasks.json"]),
        ("mv docs/example .idea", [".idea/tasks.json"]),
        ("mv .vscode v; ln -s docs/example .vscode", [".vscode", ".vscode/tasks.json"]),
        ("mkdir -p node_modules/.bin; echo x > node_modules/.bin/tsc", ["node_modules/"]),
        ("mkdir -p .venv/bin; touch .venv/pyvenv.cfg .venv/bin/python .venv/bin/activate", [".venv/"]),
        ("rm -rf .vscode Makefile", []),
        ("mkdir x; cd x; echo x > AGENTS.md; echo x > .mcp.json", ["x/.mcp.json", "x/AGENTS.md"]),
    ],
)
def test_the_result_names_what_a_command_left_for_other_tools(
    user: User, project: Path, command: str, paths: list[str]
) -> None:
    assert [file["path"] for file in run(user, project, command)] == paths


def test_the_text_output_the_page_and_an_ephemeral_run_name_it(user: User, project: Path) -> None:
    model = user.script(lead_call("run_command", command="echo x > .envrc"), lead_reply("done"))
    words = ("run", "x", *YOLO, *LEAD, "-C", str(project), "--model", model)
    ended = user.agent(*words)
    expected = f"{WILL_RUN}\n  .envrc (direnv, when you enter the folder)\n"
    assert expected in ended.stderr
    assert expected in user.agent("runs", "show", "last").stdout
    (project / ".envrc").unlink()
    assert expected in user.agent(*words, "--ephemeral").stderr


def test_what_a_file_tool_wrote_or_the_plan_declared_is_not_named(user: User, project: Path) -> None:
    model = user.script(
        plan({**step("s1"), "writes": ["Makefile", "ci/**"]}),
        step_call("s1", "write_file", path=".envrc", content="x\n"),
        step_call("s1", "run_command", command="echo x >> Makefile; mkdir -p ci; echo x > ci/Makefile; echo > tox.ini"),
        step_reply("s1", "done"),
        composer_reply("done"),
    )
    words = ("run", "x", *YOLO, "-C", str(project), "--model", model, "--output-format", "json")
    ended = user.agent(*words)
    assert json.loads(ended.stdout)["will_run"] == [{"path": "tox.ini", "runs": "tox"}]


def test_what_the_user_changed_before_the_command_is_not_named(user: User, project: Path) -> None:
    assert run(user, project, "cat Makefile > /dev/null") == []
    (project / "Makefile").write_text("changed: by me\n")
    assert run(user, project, "echo 1 > a.txt") == []
