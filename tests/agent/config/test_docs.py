"""docs/configuration.md matches the code."""

import re

import pytest

from agent.config.environment import PROVIDER_VARIABLES
from agent.config.load import load_settings
from agent.config.user_file import parse_user_file
from tests.agent.config.settings_table import PAGE, with_table

TEXT = PAGE.read_text()


def test_the_table_of_settings_is_up_to_date() -> None:
    assert with_table(TEXT) == TEXT, "run: python -m tests.agent.config.settings_table"


def test_the_table_check_can_fail() -> None:
    assert with_table(TEXT.replace("`max_turns`", "`max_tuns`")) == TEXT


def test_every_provider_variable_is_documented() -> None:
    assert [name for name in PROVIDER_VARIABLES if f"`{name}`" not in TEXT] == []


@pytest.mark.parametrize("example", re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL))
def test_every_example_is_a_valid_settings_file(example: str) -> None:
    assert parse_user_file(example, PAGE).values


@pytest.mark.parametrize("variable", re.findall(r"^export (AGENT_\w+=\S+)$", TEXT, re.MULTILINE))
def test_every_variable_in_an_example_is_valid(variable: str) -> None:
    name, _, value = variable.partition("=")
    assert load_settings(environ={name: value.strip("'")}, bare=True, strict=True)
