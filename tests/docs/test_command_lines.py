"""Every `agent …` line in the documentation, also where it is not run, uses existing commands and flags."""

import re
import shlex
from functools import cache

import pytest

from cli.completion.command_tree import CommandNode, build_tree
from cli.typer_program import build_application
from tests.docs.console_blocks import PAGES
from tests.house.source_tree import ROOT

_BLOCK = re.compile(r"```(?:sh|console)\n(.*?)```", re.DOTALL)
_CALL = re.compile(r"(?:^|[|;&(] *|\$ )(agent(?: (?:'[^'\n]*'|\"[^\"\n]*\"|[^|;&>#)\n])*)?)", re.MULTILINE)
LINES = [
    (page.name, call.strip())
    for page in (*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "AGENTS.md", ROOT / "examples" / "README.md")
    for block in _BLOCK.findall(page.read_text())
    for call in _CALL.findall(block)
]


@cache
def tree(name: str | None) -> CommandNode:
    return build_tree(build_application(name))


def unknown_words(line: str) -> list[str]:
    """Return the commands and flags of a line that do not exist."""
    words = shlex.split(line)[1:]
    words = words[: words.index("--")] if "--" in words else words
    names = [word for word in words if not word.startswith("-")]
    command, known = tree(names[0] if names and "-p" not in words else "run"), {"-p"}
    for name in names:
        known |= set(command.flags)
        if not command.commands:
            break
        if name not in command.commands:
            return [name]
        command = command.commands[name]
    known |= set(command.flags)
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]


@pytest.mark.parametrize(("page", "line"), LINES, ids=str)
def test_a_command_line_uses_existing_commands_and_flags(page: str, line: str) -> None:
    assert unknown_words(line) == []


def test_a_misspelled_command_or_flag_is_noticed() -> None:
    assert len(LINES) > 50
    assert unknown_words("agent sesions list") == ["sesions"]
    assert unknown_words("agent sessions lst --json") == ["lst"]
    assert unknown_words("agent run --modle x 'a task' -C .") == ["--modle"]
