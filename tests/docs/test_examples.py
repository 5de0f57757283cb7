"""Every example in the documentation runs and prints what the page shows."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.cli.repl.terminal_session import TerminalSession
from tests.cli.terminal_user import User, lead_call, lead_reply
from tests.docs.console_blocks import PAGES, ConsoleBlock, blocks
from tests.docs.update_console_blocks import merge_lines, shell, update_block
from tests.house.source_tree import ROOT
from tests.programs import needs

pytestmark = pytest.mark.slow
PLUGIN_PAGE = (ROOT / "docs" / "web-memory-and-plugins.md").read_text()


@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.name)
@needs("bwrap")
def test_a_console_block_prints_what_it_shows(user: User, block: ConsoleBlock) -> None:
    output = shell(user, "\n".join(block.commands))
    assert block.matches(output), f"expected:\n{block.output}\ngot:\n{output}"


def test_the_comparison_can_fail() -> None:
    block = ConsoleBlock(page=PAGES[0], number=1, text="$ true\na … c\n…\nend\n")
    assert block.matches("a b c\nx\ny\nend\n")
    assert block.matches("a  c\nend\n")
    assert not block.matches("a b d\nend\n")
    assert not block.matches("a b c\nend\nmore\n")


def test_changed_output_is_merged_into_a_block() -> None:
    block = ConsoleBlock(page=PAGES[0], number=1, text="$ one\nok in … s\nold\n$ two\nlast\n")
    printed = ["ok in 0.1 s\nnew of run-20260101000000-abcdef\n", "last\n"]
    assert update_block(block, printed) == "$ one\nok in … s\nnew of run-…\n$ two\nlast\n"
    assert merge_lines(["a", "b …", "c"], ["x", "b 1", "b 2", "c"]) == ["x", "b …", "b 2", "c"]


def test_every_example_runs_as_its_header_says(user: User) -> None:
    for file in sorted((ROOT / "examples").glob("*.jsonl")):
        lines = re.findall(r"^#(?: Try:|  ) +(.*)", file.read_text(), re.MULTILINE)
        assert any(line.startswith("agent run") or "| agent run" in line for line in lines), file
        output = shell(user, "\n".join(("set -e", *lines)).replace("/tmp/", ""))
        (user.home / "project" / "examples").unlink()
        answer = "\n".join(line for line in output.splitlines() if not line.startswith("files in "))
        assert answer.endswith((".", "Hello from Windlass.")) and "error" not in output, output


def test_the_plugin_of_the_page_is_a_tool(user: User) -> None:
    plugin = user.home / "plugin"
    _install(plugin)
    for name in ("work", "project"):
        (user.home / name).mkdir()
    (user.home / "work" / "poem.txt").write_text("three little words")
    environ = {"PYTHONPATH": f"{ROOT}:{plugin}"}
    listed = user.agent("tools", "list", **environ)
    assert "word_count      read     Count the words of a text file." in listed.stdout
    model = user.script(lead_call("word_count", path="poem.txt"), lead_reply("counted"))
    ended = user.agent("run", "count", "--model", model, "-C", "work", "--output-format", "json", **environ)
    (call,) = ended.document["step_results"][0]["tool_calls"]  # type: ignore[index]
    assert (call["status"], call["output_preview"]) == ("ok", "3 words")
    terminal = TerminalSession(user, rows=60, AGENT_MODEL=model, **environ)
    terminal.folder.joinpath("poem.txt").write_text("just two")
    # Plugins are loaded behind the prompt.
    while "/words" not in terminal.pause():
        terminal.send_line("/help")
    terminal.send_line("/words poem.txt")
    terminal.wait_for("2 words")
    terminal.close()


def _install(folder: Path) -> None:
    """Install the package shown on the page."""
    (project,) = [text for text in re.findall(r"```toml\n(.*?)```", PLUGIN_PAGE, re.DOTALL) if "entry-points" in text]
    (module,) = re.findall(r"```python\n(.*?)```", PLUGIN_PAGE, re.DOTALL)
    about = tomllib.loads(project)["project"]
    ((group, points),) = about["entry-points"].items()
    metadata = folder / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    metadata.mkdir(parents=True)
    lines = [f"{name} = {target}" for name, target in points.items()]
    (metadata / "entry_points.txt").write_text("\n".join((f"[{group}]", *lines)))
    (folder / "word_count.py").write_text(module)


def test_the_demo_answers_without_a_key(user: User) -> None:
    ended = user.agent("demo")
    assert (ended.exit_code, "1350" in ended.stdout) == (0, True)


def test_the_doctor_names_what_is_missing(user: User) -> None:
    ended = user.agent("doctor", "--json", AGENT_MODEL="openai/gpt-5")
    document = json.loads(ended.stdout)
    assert (ended.exit_code, document["ok"]) == (1, False)
    assert [finding["name"] for finding in document["findings"] if finding["state"] == "problem"] == ["model"]
