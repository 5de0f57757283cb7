"""Receipts in an answer: real ones stay, invented ones go, other brackets are left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.execution.result.compose import remove_unknown_citations

IDS = ["s1", "s2", "build-3"]


@pytest.mark.parametrize(
    ("said", "stays"),
    [
        ("Three files [s1].", "Three files [s1]."),
        ("Three files [s9].", "Three files."),
        ("Three files [s1, s9].", "Three files [s1]."),
        ("Three files [s1; s2].", "Three files [s1; s2]."),
        ("Built [build-7] and tested [s2].", "Built and tested [s2]."),
        ("Both [s8][s1].", "Both[s1]."),
        ("- [x] done, see [the page](http://x) and [1]", "- [x] done, see [the page](http://x) and [1]"),
        ("[s9](http://x) is a link, [s9]: one too", "[s9](http://x) is a link, [s9]: one too"),
        ("`a[s9]` and\n```\nb[s9]\n```\nbut [s9] not", "`a[s9]` and\n```\nb[s9]\n```\nbut not"),
        ("```\nnever closed [s9]", "```\nnever closed [s9]"),
        ("the list [s1, other]", "the list [s1, other]"),
        ("[]", "[]"),
    ],
)
def test_only_receipts_for_steps_that_exist_stay(said: str, stays: str) -> None:
    assert remove_unknown_citations(said, IDS) == stays


@given(st.text(alphabet="[]`s19,; ab\n()x"))
def test_an_answer_only_loses_receipts(said: str) -> None:
    kept = remove_unknown_citations(said, IDS)
    assert remove_unknown_citations(said, []) == said
    letters = iter(said)
    assert all(letter in letters for letter in kept if letter not in ", ")


@given(st.text())
def test_any_text_can_be_read(said: str) -> None:
    remove_unknown_citations(said, IDS)
