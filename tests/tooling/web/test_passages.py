"""Finding the passages of a text that match a query."""

import pytest

from tooling.web.passages import PASSAGE_CHARS, find_passages

FILLER = "Nothing of interest is written here, only words that fill the page from margin to margin.\n\n" * 40
HOURS = "## Opening hours\n\nThe museum opens at nine on Tuesdays.\n\n"
TEXT = f"# Start\n\n{FILLER}{HOURS}{FILLER}## Prices\n\nTickets cost 12 crowns.\n"


def found(query: str, text: str = TEXT, max_chars: int = 3000) -> str:
    return "\n".join(passage.text for passage in find_passages(query, text, max_chars=max_chars))


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("when does the museum open?", "opens at nine"),
        ("TICKET price", "12 crowns"),
        ("opening hours", "opens at nine"),
        ("crowns", "12 crowns"),
    ],
)
def test_the_matching_passage_is_found(query: str, fact: str) -> None:
    assert fact in found(query)


def test_passages_have_their_offset_and_heading() -> None:
    for passage in find_passages("museum Tuesdays", TEXT):
        assert TEXT[passage.offset :].startswith(passage.text)
    best = max(find_passages("museum Tuesdays", TEXT), key=lambda passage: passage.score)
    assert best.heading == "Opening hours"


def test_passages_are_in_text_order_and_within_the_limit() -> None:
    text = "\n\n".join(f"The ship number {n} sails." for n in range(3000))
    passages = find_passages("ship 17 and ship 2900", text, max_chars=2500)
    offsets = [passage.offset for passage in passages]
    assert offsets == sorted(offsets)
    assert sum(len(passage.text) for passage in passages) <= 2500
    assert "number 2900 " in "".join(passage.text for passage in passages)


def test_nothing_is_found_for_words_that_do_not_occur() -> None:
    assert find_passages("xylophone", TEXT) == []
    assert find_passages("", TEXT) == []
    assert find_passages("museum", "") == []


def test_scripts_without_spaces_are_searched_too() -> None:
    text = "これは長い文章です。" * 200 + "博物館は火曜日の九時に開きます。" + "これは長い文章です。" * 200
    assert "九時に開きます" in found("博物館 開く時間", text)


@pytest.mark.parametrize("text", ["x" * 100_000, "\n" * 100_000, "# " * 50_000, "a b " * 30_000])
def test_no_passage_of_an_odd_text_is_too_long(text: str) -> None:
    for passage in find_passages("a x", text):
        assert len(passage.text) <= PASSAGE_CHARS
