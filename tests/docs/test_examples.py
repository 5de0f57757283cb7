"""What the documents tell a person to type works, and shows what they say it shows."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.cli.repl.terminal_session import TerminalSession
from tests.cli.terminal_user import LIMIT_S, User, one_step, step_call, step_reply
from tests.docs.console_blocks import PAGES, ConsoleBlock, blocks
from tests.house.program import AGENT
from tests.house.source_tree import ROOT
from tests.programs import needs

pytestmark = pytest.mark.slow
GUIDE = (ROOT / "docs" / "guide.md").read_text()


def shell(user: User, line: str) -> str:
    """Run lines in a shell as somebody in a checkout would; return all the terminal shows."""
    (user.home / "examples").symlink_to(ROOT / "examples")
    environ = user.environment(PATH=f"{AGENT.parent}:/usr/local/bin:/usr/bin:/bin")
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=user.home,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT_S,
        check=False,
    )
    return done.stdout.decode()


@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.name)
@needs("bwrap")
def test_a_session_at_the_terminal_goes_as_shown(user: User, block: ConsoleBlock) -> None:
    output = shell(user, "\n".join(block.commands))
    assert block.matches(output), f"expected:\n{block.output}\ngot:\n{output}"


def test_the_comparison_can_fail() -> None:
    block = ConsoleBlock(page=PAGES[0], number=1, commands=(), output="a … c\n…\nend\n")
    assert block.matches("a b c\nx\ny\nend\n")
    assert block.matches("a  c\nend\n")
    assert not block.matches("a b d\nend\n")
    assert not block.matches("a b c\nend\nmore\n")


def test_every_example_runs_as_its_first_lines_say(user: User) -> None:
    (user.home / "two-steps").mkdir()
    for file in sorted((ROOT / "examples").glob("*.jsonl")):
        comments = [line.lstrip("# ") for line in file.read_text().splitlines() if line.startswith("#")]
        (line,) = [line.removeprefix("Try: ") for line in comments if "agent run" in line]
        output = shell(user, f"set -e; {line.replace('/tmp/two-steps', 'two-steps')}")
        (user.home / "examples").unlink()
        answer = "\n".join(line for line in output.splitlines() if not line.startswith("files: "))
        assert answer.endswith((".", "Hello from Windlass.")) and "error" not in output, output


def test_the_plugin_of_the_guide_is_a_tool(user: User) -> None:
    plugin = user.home / "plugin"
    _install(plugin)
    for name in ("work", "project"):
        (user.home / name).mkdir()
    (user.home / "work" / "poem.txt").write_text("three little words")
    environ = {"PYTHONPATH": f"{ROOT}:{plugin}"}
    listed = user.agent("tools", "list", **environ)
    assert "word_count      read     Count the words of a text file." in listed.stdout
    model = user.script(*one_step(step_call("s1", "word_count", path="poem.txt"), step_reply("s1", "counted")))
    ended = user.agent("run", "count", "--model", model, "-C", "work", "--output-format", "json", **environ)
    (call,) = ended.document["step_results"][0]["tool_calls"]  # type: ignore[index]
    assert (call["status"], call["output_preview"]) == ("ok", "3 words")
    seat = TerminalSession(user, rows=60, AGENT_MODEL=model, **environ)
    seat.folder.joinpath("poem.txt").write_text("just two")
    # Plugins are loaded behind the prompt.
    while "/words" not in seat.pause():
        seat.send_line("/help")
    seat.send_line("/words poem.txt")
    seat.wait_for("2 words")
    seat.close()


def _install(folder: Path) -> None:
    """Put the guide's package where an installer would."""
    (project,) = [text for text in re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL) if "entry-points" in text]
    (module,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    about = tomllib.loads(project)["project"]
    ((group, points),) = about["entry-points"].items()
    metadata = folder / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    metadata.mkdir(parents=True)
    lines = [f"{name} = {target}" for name, target in points.items()]
    (metadata / "entry_points.txt").write_text("\n".join((f"[{group}]", *lines)))
    (folder / "word_count.py").write_text(module)


def test_the_demonstration_answers_without_a_key(user: User) -> None:
    ended = user.agent("demo")
    assert (ended.exit_code, "1350" in ended.stdout) == (0, True)


def test_the_doctor_names_what_is_missing(user: User) -> None:
    ended = user.agent("doctor", "--json", AGENT_MODEL="openai/gpt-5")
    document = json.loads(ended.stdout)
    assert (ended.exit_code, document["ok"]) == (1, False)
    assert [finding["name"] for finding in document["findings"] if finding["state"] == "problem"] == ["model"]
