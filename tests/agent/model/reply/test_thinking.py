"""Reasoning between tags is separated from the answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model.reply.thinking import ThinkingFilter, split_thinking


@pytest.mark.parametrize(
    ("text", "answer", "thinking"),
    [
        ("Hello.", "Hello.", ""),
        ("  Hello.\n", "  Hello.\n", ""),
        ("", "", ""),
        ("<think>hm</think>Hello.", "Hello.", "hm"),
        ("\n<thinking>\nhm\n</thinking>\n\nHello.", "Hello.", "hm"),
        ("<reasoning>hm</reasoning>\nHello.", "Hello.", "hm"),
        ("<think>\n\n</think>\n\nHello.", "Hello.", ""),
        ("<think>one</think>\n<think>two</think>\nHello.", "Hello.", "one\ntwo"),
        ("<think>never closed", "", "never closed"),
        ("<think>a </thinking> b</think>Hello.", "Hello.", "a </thinking> b"),
        ("dropped opening\n</think>\n\nHello.", "Hello.", "dropped opening"),
        ("</think>\nHello.", "Hello.", ""),
    ],
)
def test_reasoning_is_separated(text: str, answer: str, thinking: str) -> None:
    assert split_thinking(text) == (answer, thinking)


@pytest.mark.parametrize(
    "text",
    [
        "Models write <think>hm</think> first.",
        "The tag `</think>` ends it.",
        "An example:\n```\n<think>\nhm\n</think>\n```\nThat is all.",
        "<thinker>no tag</thinker>",
        "<think",
        "a < b",
    ],
)
def test_answers_about_tags_are_unchanged(text: str) -> None:
    assert split_thinking(text) == (text, "")


def test_fragments_are_emitted_as_soon_as_they_can_be_classified() -> None:
    tags = ThinkingFilter()
    assert tags.feed("<thi") == []
    assert tags.feed("nk>let me") == [("reasoning", "let me")]
    assert tags.feed(" see</thi") == [("reasoning", " see")]
    assert tags.feed("nk>\n") == []
    assert tags.feed("Hel") == [("text", "Hel")]
    assert tags.feed("lo <think>") == [("text", "lo <think>")]
    assert tags.flush() == []


def test_an_ordinary_answer_is_never_held_back() -> None:
    tags = ThinkingFilter()
    assert tags.feed("H") == [("text", "H")]
    assert tags.feed("") == []
    assert tags.feed("i <") == [("text", "i <")]


MESSAGES = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<thinking>", "</thinking>", "<reasoning>", " ", "\n", "a", "<", "</t", "b"]
    )
).map("".join)


@given(MESSAGES, st.data())
def test_the_split_into_fragments_makes_no_difference(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert feed_all(pieces) == feed_all([text])


@given(MESSAGES)
def test_a_message_without_reasoning_is_unchanged(text: str) -> None:
    message = "x" + text
    assert feed_all([message]) == (message, "")


def feed_all(pieces: list[str]) -> tuple[str, str]:
    tags = ThinkingFilter()
    fragments = [fragment for piece in pieces for fragment in tags.feed(piece)] + tags.flush()
    return (
        "".join(part for kind, part in fragments if kind == "text"),
        "".join(part for kind, part in fragments if kind == "reasoning"),
    )
