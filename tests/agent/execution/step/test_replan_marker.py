"""The SURPRISE line at the end of an answer, which asks for replanning."""

import pytest

from agent.execution.step.stalls import split_surprise


@pytest.mark.parametrize(
    ("answer", "left", "why"),
    [
        ("All done.", "All done.", ""),
        ("Found 3.\n\nSURPRISE: there is no database", "Found 3.", "there is no database"),
        ("Found 3.\n**SURPRISE:** no database.", "Found 3.", "no database."),
        ("Found 3.\n- `SURPRISE: no database`\n\n", "Found 3.", "no database"),
        ("SURPRISE: nothing there", "nothing there", "nothing there"),
        ("Found.\nSURPRISE:", "Found.", "the plan no longer fits"),
        ("SURPRISE: early\nand more text", "SURPRISE: early\nand more text", ""),
        ("What a surprise: it works", "What a surprise: it works", ""),
    ],
)
def test_a_surprise_on_the_last_line_is_split_off(answer: str, left: str, why: str) -> None:
    assert split_surprise(answer) == (left, why)
