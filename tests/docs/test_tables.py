"""Tables, names and flags in the documentation match the code."""

import re
from pathlib import Path

import pytest
from typer.core import TyperCommand
from typer.main import get_command

from agent.config.user_commands import load_user_commands
from agent.model.providers import PROVIDERS
from cli.command_table import COMMANDS
from cli.typer_program import build_application
from tests.docs import prompt_commands, providers_table
from tests.docs.console_blocks import PAGES

PROVIDERS_PAGE = providers_table.PAGE.read_text()
PROMPT_PAGE = prompt_commands.PAGE.read_text()
_FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]+)")
# Flags of the top level and of the measuring script.
_FOREIGN = {"--version", "--help", "--prompt", "--list", "--write", "--separate-git-dir"}


def test_the_table_of_providers_is_up_to_date() -> None:
    assert providers_table.update_table(PROVIDERS_PAGE) == PROVIDERS_PAGE, "run: python -m tests.docs.providers_table"


def test_the_table_of_slash_commands_is_up_to_date() -> None:
    assert prompt_commands.update_table(PROMPT_PAGE) == PROMPT_PAGE, "run: python -m tests.docs.prompt_commands"


def test_every_name_that_needs_no_provider_is_listed() -> None:
    prefixes = [prefix for row in PROVIDERS for prefix in row.model_prefixes]
    assert [prefix for prefix in prefixes if f"`{prefix}`" not in PROVIDERS_PAGE] == []


def test_the_user_command_of_the_page_loads(tmp_path: Path) -> None:
    (text,) = re.findall(r"```markdown\n(.*?)```", PROMPT_PAGE, re.DOTALL)
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / "explain.md").write_text(text)
    (command,) = load_user_commands(tmp_path, pytest.fail)
    assert (command.name, command.usage) == ("explain", "TEST")
    assert command.help == "Explain a failing test."
    assert command.expand("test_a").startswith("Run test_a. Say why")


def test_every_flag_in_the_documentation_exists() -> None:
    known = {flag for entry in COMMANDS for flag in flags_of(get_command(build_application(entry.name)))}
    for page in PAGES:
        unknown = set(_FLAG.findall(page.read_text())) - known - _FOREIGN
        assert not unknown, f"{page.name}: {sorted(unknown)}"


def flags_of(command: TyperCommand) -> set[str]:
    """Return the flags of a command and of all below it."""
    own = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
    below = getattr(command, "commands", {}).values()
    return own.union(*map(flags_of, below))
