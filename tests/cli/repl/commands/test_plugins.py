"""Commands that others bring: plugins and the person's own files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.repl.terminal_session import Seat
from tests.cli.repl.ui.test_input import request
from tests.cli.terminal_user import User, answer
from tests.house.source_tree import ROOT
from tests.tooling.test_registry import PLUGIN, install

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]
COMMANDS = """
    commands = (
        ToolCommand(name="shout", help="Say it loud.", argument="word"),
        ToolCommand(name="help", help="Not ours to give."),
    )
"""


def shouting(site: Path, first: str = "") -> str:
    """Install a plugin with a command and return where Python finds it; `first` runs when it is loaded."""
    site.mkdir()
    source = PLUGIN.format(name="shout").replace("Tool, ToolSpec", "Tool, ToolCommand, ToolSpec")
    source = source.replace("    async def run", f"{COMMANDS}\n    async def run")
    install(site, "shout", first + source, "shout = plugin_shout:Shout")
    return f"{site}:{ROOT}"


def test_a_plugin_offers_a_command_that_calls_its_tool(sit: Open, tmp_path: Path) -> None:
    seat = sit(answer("x"), PYTHONPATH=shouting(tmp_path / "site"))
    seat.sees("there is already a command /help")
    seat.types("/sh")
    seat.sees("Say it loud.")
    seat.types("out hello you\r")
    seat.sees("HELLO YOU")


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_a_command_of_a_plugin_that_is_still_loading_is_waited_for(sit: Open, tmp_path: Path, term: str) -> None:
    gate = tmp_path / "gate"
    waits = f"import time\nfrom pathlib import Path\nwhile not Path({str(gate)!r}).exists(): time.sleep(0.01)\n"
    seat = sit(answer("x"), PYTHONPATH=shouting(tmp_path / "site", waits), TERM=term)
    seat.sees("Ctrl-D leaves")
    seat.types("/help shout\r/nonsense\r/shout hello you\r")
    if term != "dumb":
        seat.types("/sho")
        seat.sees("> /sho")
    assert "there is no command" not in seat.settles()
    gate.touch()
    shown = seat.sees("HELLO YOU")
    assert "/shout [WORD]  Say it loud." in shown
    assert shown.count("there is no command") == 1 and "there is no command /nonsense" in shown
    if term != "dumb":
        seat.until(lambda: "Say it loud." in seat.window().partition("HELLO YOU")[2], "the command to be offered")


def test_a_file_of_the_person_is_a_command(sit: Open, user: User) -> None:
    folder = user.home / ".config" / "agent" / "commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text(
        "---\ndescription: Review a file.\nargument-hint: FILE\n---\nReview $ARGUMENTS with care.\n"
    )
    seat = sit(answer("Looks good."))
    seat.sees("Ctrl-D leaves")
    seat.types("/rev")
    seat.sees("Review a file.")
    seat.types("iew main.py\r")
    seat.sees("Looks good.")
    assert request(seat) == "Review main.py with care."
