"""The page lists every exit code and subtype."""

import re

from agent.vocabulary import exit_codes
from tests.house.source_tree import ROOT

ROWS = re.findall(r"^\| (\d+) \| (.*?) \|", (ROOT / "docs" / "exit-codes.md").read_text(), re.MULTILINE)


def test_every_code_is_listed_once_and_in_order() -> None:
    known = sorted(value for value in vars(exit_codes).values() if isinstance(value, int))
    assert [int(code) for code, _ in ROWS] == known


def test_every_subtype_is_listed_with_its_code() -> None:
    listed = {int(code): re.findall(r"`(\w+)`", subtypes) for code, subtypes in ROWS}
    assert [code for code, subtype in exit_codes.SUBTYPES.items() if subtype not in listed[code]] == []
