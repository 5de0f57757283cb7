"""Edits of a masked text keep the secrets behind its masks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooling.contract.result import ToolError
from tooling.safety.secrets.masked_text import MaskedText
from tooling.safety.secrets.redact import MASK, Redactor

ONE, TWO = "correct-horse-battery", "staple-in-the-attic"
SECRETS = Redactor([ONE, TWO])
KEY = "-----BEGIN PRIVATE KEY-----\nabc\ndef\n-----END PRIVATE KEY-----"


def masked(text: str) -> MaskedText:
    return MaskedText.of(text, SECRETS)


def edited(text: str, old: str, new: str) -> str:
    before = masked(text)
    (start,) = before.find_all(masked(old))
    return before.replace(start, start + len(masked(old).text), masked(new), "a.ini").real


PARTS = st.sampled_from([ONE, TWO, MASK, KEY, "key = ", "\n", "x", "[", "]", "REDACTED"])


@given(st.lists(PARTS, max_size=12).map("".join))
def test_a_masked_text_contains_no_secret_and_restores_the_original(text: str) -> None:
    assert masked(text).real == text
    assert ONE not in masked(text).text
    assert TWO not in masked(text).text


@given(st.lists(PARTS, max_size=12).map("".join))
def test_secrets_are_found_where_the_text_is_masked(text: str) -> None:
    pieces, done = "", 0
    for start, end in SECRETS.find_secrets(text):
        pieces, done = pieces + text[done:start] + MASK, end
    assert pieces + text[done:] == SECRETS.redact(text)
    assert SECRETS.mask_lines(text).count("\n") == text.count("\n")


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        (f"a={ONE}\nb=1\n", f"a={MASK}\nb=1", f"a={MASK}\nb=2", f"a={ONE}\nb=2\n"),
        (f"a={ONE}\n", f"a={MASK}", f"renamed={MASK}", f"renamed={ONE}\n"),
        (f"a={ONE}\n", f"a={MASK}", "a=env('A')", "a=env('A')\n"),
        (f"a={ONE}\nb={TWO}\n", f"a={MASK}\nb={MASK}", f"b={MASK}\na={MASK}", f"b={TWO}\na={ONE}\n"),
        (f"a={ONE}\nb={TWO}\n", f"a={MASK}\nb={MASK}", f"b={MASK}  # new", f"b={TWO}  # new\n"),
        (f"a={ONE}\n", f"a={ONE}", f"a={TWO}", f"a={TWO}\n"),
        (f"log {MASK}\n", f"log {MASK}", f"print {MASK} {MASK}", f"print {MASK} {MASK}\n"),
        (f"k={KEY}\n", f"k={MASK}", f"key={MASK}", f"key={KEY}\n"),
    ],
)
def test_a_mask_in_the_new_text_keeps_its_secret(text: str, old: str, new: str, result: str) -> None:
    assert edited(text, old, new) == result


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (f"a={ONE}\nb=1\n", "b=1", f"b={MASK}"),
        (f"a={ONE}\nb={TWO}\n", f"a={MASK}\nb={MASK}", f"c={MASK}\nd={MASK}"),
        (f"a={ONE}\nb={TWO}\n", f"a={MASK}\nb={MASK}", f"c={MASK}"),
        (f"a={ONE}\n", f"a={MASK}", f"a={MASK}\nb={MASK}"),
        (f"a={ONE}\nx=[\n", "=[\n", "=[REDACTED]\n"),
    ],
)
def test_an_unclear_mask_is_an_error(text: str, old: str, new: str) -> None:
    with pytest.raises(ToolError, match="not clear"):
        edited(text, old, new)


def test_text_inside_a_secret_or_a_mask_is_not_found() -> None:
    text = masked(f"a={ONE}\nhorse\n[x]\n")
    assert [len(text.find_all(masked(old))) for old in ("horse", "[", "]", "REDACTED", ONE, TWO, MASK)] == [
        1,
        1,
        1,
        0,
        1,
        0,
        1,
    ]


def test_lines_after_a_secret_of_several_lines_have_their_real_numbers() -> None:
    text = masked(f"one\n{KEY}\nsix\n")
    assert [text.line_number(index) for index in range(3)] == [1, 2, 6]
