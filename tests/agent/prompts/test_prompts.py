"""The files of the prompts: each has a version, all are used, and values are filled in once."""

import re

import pytest

from agent.prompts.load import VERSION_LINE, load_prompt
from tests.house.source_tree import ROOT

FILES = sorted(path for path in (ROOT / "agent" / "prompts").glob("*.md") if path.name != "README.md")


@pytest.mark.parametrize("name", [path.stem for path in FILES])
def test_a_prompt_has_a_version_that_is_not_sent(name: str) -> None:
    assert VERSION_LINE.match((ROOT / "agent" / "prompts" / f"{name}.md").read_text())
    text = load_prompt(name)
    assert text == text.strip() != ""
    assert "<!--" not in text


def test_every_prompt_is_used_and_every_used_one_exists() -> None:
    sources = "\n".join(path.read_text() for layer in ("agent", "cli") for path in (ROOT / layer).rglob("*.py"))
    used = set(re.findall(r"load_prompt\(\s*[\"'](\w+)[\"']", sources))
    assert used == {path.stem for path in FILES}


def test_values_are_filled_in_once_and_other_braces_stay() -> None:
    text = load_prompt("replan", progress="{reason}", reason="it failed")
    assert "\n{reason}\n" in text and "because: it failed" in text
    assert '{"steps": []}' in text


def test_the_system_text_is_a_constant() -> None:
    assert not re.search(r"\{\w+\}", load_prompt("system"))
