"""Commands that others bring: plugins and the person's own files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.repl.terminal_session import TerminalSession
from tests.cli.repl.ui.test_input import request
from tests.cli.terminal_user import User, answer
from tests.house.source_tree import ROOT
from tests.tooling.test_registry import PLUGIN, install

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]
COMMANDS = """
    commands = (
        ToolCommand(name="shout", help="Say it loud.", argument="word"),
        ToolCommand(name="help", help="Not ours to give."),
    )
"""


def install_plugin(site: Path, first: str = "") -> str:
    """Install a plugin with a command and return where Python finds it; `first` runs when it is loaded."""
    site.mkdir()
    source = PLUGIN.format(name="shout").replace("Tool, ToolSpec", "Tool, ToolCommand, ToolSpec")
    source = source.replace("    async def run", f"{COMMANDS}\n    async def run")
    install(site, "shout", first + source, "shout = plugin_shout:Shout")
    return f"{site}:{ROOT}"


def test_a_plugin_offers_a_command_that_calls_its_tool(sit: Open, tmp_path: Path) -> None:
    seat = sit(answer("x"), PYTHONPATH=install_plugin(tmp_path / "site"))
    seat.wait_for("there is already a command /help")
    seat.send("/sh")
    seat.wait_for("Say it loud.")
    seat.send("out hello you\r")
    seat.wait_for("HELLO YOU")


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_a_command_of_a_plugin_that_is_still_loading_is_waited_for(sit: Open, tmp_path: Path, term: str) -> None:
    gate = tmp_path / "gate"
    waits = f"import time\nfrom pathlib import Path\nwhile not Path({str(gate)!r}).exists(): time.sleep(0.01)\n"
    seat = sit(answer("x"), PYTHONPATH=install_plugin(tmp_path / "site", waits), TERM=term)
    seat.wait_for("Ctrl-D leaves")
    seat.send("/help shout\r/nonsense\r/shout hello you\r")
    if term != "dumb":
        seat.send("/sho")
        seat.wait_for("> /sho")
    assert "there is no command" not in seat.pause()
    gate.touch()
    shown = seat.wait_for("HELLO YOU")
    assert "/shout [WORD]  Say it loud." in shown
    assert shown.count("there is no command") == 1 and "there is no command /nonsense" in shown
    if term != "dumb":
        seat.wait_until(
            lambda: "Say it loud." in seat.window_text().partition("HELLO YOU")[2], "the command to be offered"
        )


def test_a_file_of_the_person_is_a_command(sit: Open, user: User) -> None:
    folder = user.home / ".config" / "agent" / "commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text(
        "---\ndescription: Review a file.\nargument-hint: FILE\n---\nReview $ARGUMENTS with care.\n"
    )
    seat = sit(answer("Looks good."))
    seat.wait_for("Ctrl-D leaves")
    seat.send("/rev")
    seat.wait_for("Review a file.")
    seat.send("iew main.py\r")
    seat.wait_for("Looks good.")
    assert request(seat) == "Review main.py with care."
