"""Slash commands from plugins and from files of the user."""

from pathlib import Path

import pytest

from tests.cli.plugin_files import write_plugin
from tests.cli.repl.terminal_session import OpenTerminal
from tests.cli.repl.ui.test_input import request
from tests.cli.terminal_user import User, answer
from tests.house.source_tree import ROOT
from tests.tooling import test_registry
from tests.tooling.test_registry import PLUGIN

pytestmark = pytest.mark.slow
COMMANDS = """
    commands = (
        ToolCommand(name="shout", help="Say it loud.", argument="word"),
        ToolCommand(name="help", help="Already taken."),
    )
"""


def install_plugin(site: Path, first: str = "") -> str:
    """Install a plugin with a command and return its PYTHONPATH; the code in `first` runs when it is loaded."""
    site.mkdir()
    source = PLUGIN.format(name="shout").replace("Tool, ToolSpec", "Tool, ToolCommand, ToolSpec")
    source = source.replace("    async def run", f"{COMMANDS}\n    async def run")
    test_registry.install_plugin(site, "shout", first + source, "shout = plugin_shout:Shout")
    return f"{site}:{ROOT}"


def test_a_plugin_offers_a_command_that_calls_its_tool(open_terminal: OpenTerminal, tmp_path: Path) -> None:
    terminal = open_terminal(answer("x"), PYTHONPATH=install_plugin(tmp_path / "site"))
    terminal.wait_for("a command /help already exists")
    terminal.send("/sh")
    terminal.wait_for("Say it loud.")
    terminal.send("out hello you\r")
    terminal.wait_for("HELLO YOU")


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_a_command_waits_for_its_plugin_to_load(open_terminal: OpenTerminal, tmp_path: Path, term: str) -> None:
    gate = tmp_path / "gate"
    wait = f"import time\nfrom pathlib import Path\nwhile not Path({str(gate)!r}).exists(): time.sleep(0.01)\n"
    terminal = open_terminal(answer("x"), PYTHONPATH=install_plugin(tmp_path / "site", wait), TERM=term)
    terminal.wait_ready()
    terminal.send("/help shout\r/nonsense\r/shout hello you\r")
    if term != "dumb":
        terminal.send("/sho")
        terminal.wait_for("> /sho")
    assert "unknown command" not in terminal.pause()
    gate.touch()
    shown = terminal.wait_for("HELLO YOU")
    assert "/shout [WORD]  Say it loud." in shown
    assert shown.count("unknown command") == 1 and "unknown command /nonsense" in shown
    if term != "dumb":
        terminal.wait_until(
            lambda: "Say it loud." in terminal.window_text().partition("HELLO YOU")[2], "the command to be offered"
        )


def test_a_file_in_the_settings_folder_is_a_command(open_terminal: OpenTerminal, user: User) -> None:
    folder = user.home / ".config" / "agent" / "commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text(
        "---\ndescription: Review a file.\nargument-hint: FILE\n---\nReview $ARGUMENTS with care.\n"
    )
    terminal = open_terminal(answer("Looks good."))
    terminal.wait_ready()
    terminal.send("/rev")
    terminal.wait_for("Review a file.")
    terminal.send("iew main.py\r")
    terminal.wait_for("Looks good.")
    assert request(terminal) == "Review main.py with care."


def test_a_plugin_has_dialogs_menus_completions_and_sees_what_is_typed(open_terminal: OpenTerminal, user: User) -> None:
    write_plugin(user)
    terminal = open_terminal(answer("Noted."))
    terminal.wait_ready()
    terminal.send("/rem")
    terminal.wait_for("Keep a note in two steps.")
    terminal.send("ember groceries\r")
    terminal.wait_for("The text of groceries?")
    terminal.send("milk\r")
    terminal.wait_for("remembered groceries: milk")
    terminal.send("/remember\r")
    terminal.wait_for("Which title?")
    terminal.send("cancel\r")
    terminal.wait_for("cancelled")
    terminal.send("ping\r")
    terminal.wait_for("pong from the plugin")
    terminal.send("until tom")
    terminal.wait_for("the next day")
    terminal.send("\x15")
    terminal.send("/plugins\r")
    terminal.wait_for("Show the place")
    terminal.pause()
    terminal.send("\r")
    terminal.wait_for("works in project")
    terminal.send("what is TODAY?\r")
    terminal.wait_for("Noted.")
    assert request(terminal) == "what is Tuesday?"


def test_a_command_whose_tool_the_profile_lacks_is_not_offered(open_terminal: OpenTerminal, user: User) -> None:
    write_plugin(user)
    terminal = open_terminal(answer("x"), words=("--profile", "reviewer"))
    terminal.wait_ready()
    terminal.send("/help remember\r")
    terminal.wait_for("Keep a note in two steps.")
    terminal.send("/help note\r")
    terminal.wait_for("unknown command /note")


def test_a_failing_command_of_a_plugin_is_an_error_at_the_prompt(open_terminal: OpenTerminal, user: User) -> None:
    source = (
        "from agent.plugins.plugin import Plugin, PluginCommand\n"
        "async def fail(prompt, argument): raise ValueError('not today')\n"
        "class P(Plugin):\n    commands = (PluginCommand(name='fail', help='Fail.', run=fail),)\n"
    )
    write_plugin(user, "failing", source)
    terminal = open_terminal(answer("Still here."))
    terminal.wait_ready()
    terminal.send("/fail\r")
    terminal.wait_for("plugin failing: ValueError: not today")
    terminal.send("go on\r")
    terminal.wait_for("Still here.")
