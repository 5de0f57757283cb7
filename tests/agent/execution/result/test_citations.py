"""Citations in an answer: unknown ones are removed, other brackets are not changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.execution.result.compose import remove_unknown_citations

IDS = ["s1", "s2", "build-3"]


@pytest.mark.parametrize(
    ("answer", "expected"),
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
def test_citations_of_unknown_steps_are_removed(answer: str, expected: str) -> None:
    assert remove_unknown_citations(answer, IDS) == expected


@given(st.text(alphabet="[]`s19,; ab\n()x"))
def test_only_citations_are_removed_from_an_answer(answer: str) -> None:
    cleaned = remove_unknown_citations(answer, IDS)
    assert remove_unknown_citations(answer, []) == answer
    letters = iter(answer)
    assert all(letter in letters for letter in cleaned if letter not in ", ")


@given(st.text())
def test_any_text_is_accepted_without_an_error(answer: str) -> None:
    remove_unknown_citations(answer, IDS)
