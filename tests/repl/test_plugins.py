"""Commands that others bring: plugins and the person's own files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.terminal_user import User, answer
from tests.house.source_tree import ROOT
from tests.repl.seat import Seat
from tests.repl.test_input import request
from tests.tooling.test_registry import PLUGIN, install

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]
COMMANDS = """
    commands = (
        ToolCommand(name="shout", help="Say it loud.", argument="word"),
        ToolCommand(name="help", help="Not ours to give."),
    )
"""


def test_a_plugin_offers_a_command_that_calls_its_tool(sit: Open, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    source = PLUGIN.format(name="shout").replace("Tool, ToolSpec", "Tool, ToolCommand, ToolSpec")
    install(
        site,
        "shout",
        source.replace("    async def run", f"{COMMANDS}\n    async def run"),
        "shout = plugin_shout:Shout",
    )
    seat = sit(answer("x"), PYTHONPATH=f"{site}:{ROOT}")
    seat.sees("there is already a command /help")
    seat.types("/sh")
    seat.sees("Say it loud.")
    seat.types("out hello you\r")
    seat.sees("HELLO YOU")


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
