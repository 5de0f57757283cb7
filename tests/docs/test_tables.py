"""Tables, names and flags in the documents are those of the code."""

import re
from pathlib import Path

import pytest
from typer.core import TyperCommand
from typer.main import get_command

from agent.model.providers import PROVIDERS
from cli.application import COMMANDS, build_application
from cli.repl.commands.user_commands import load_user_commands
from tests.docs import prompt_commands, providers_table
from tests.docs.console_blocks import PAGES
from tests.house.source_tree import ROOT

GUIDE = (ROOT / "docs" / "guide.md").read_text()
_FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]+)")
# Flags of other programs, and of the future, that the pages speak of.
_FOREIGN = {"--version", "--help", "--prompt"}


def test_the_table_of_providers_is_up_to_date() -> None:
    assert providers_table.update_table(GUIDE) == GUIDE, "run: python -m tests.docs.providers_table"


def test_the_table_of_slash_commands_is_up_to_date() -> None:
    assert prompt_commands.update_table(GUIDE) == GUIDE, "run: python -m tests.docs.prompt_commands"


def test_every_name_that_needs_no_provider_is_listed() -> None:
    prefixes = [prefix for row in PROVIDERS for prefix in row.model_prefixes]
    assert [prefix for prefix in prefixes if f"`{prefix}`" not in GUIDE] == []


def test_the_command_of_ones_own_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"```markdown\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / "review.md").write_text(text)
    (command,) = load_user_commands(tmp_path, pytest.fail)
    assert (command.name, command.usage) == ("review", "BRANCH")
    assert command.help == "Review the changes of a branch."
    assert command.expand("topic").startswith("Compare topic with main.")


def test_every_flag_in_the_documents_exists() -> None:
    known = {flag for entry in COMMANDS for flag in flags_of(get_command(build_application(entry.name)))}
    for page in PAGES:
        unknown = set(_FLAG.findall(page.read_text())) - known - _FOREIGN
        assert not unknown, f"{page.name}: {sorted(unknown)}"


def flags_of(command: TyperCommand) -> set[str]:
    """Return the flags of a command and of all below it."""
    own = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
    below = getattr(command, "commands", {}).values()
    return own.union(*map(flags_of, below))
