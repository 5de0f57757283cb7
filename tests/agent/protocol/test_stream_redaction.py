"""Masking secrets in streamed text."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.protocol.channel import Channel, StreamRedactor
from agent.protocol.events import MessageAdded
from tooling.safety.secrets.redact import MASK, Redactor

KNOWN = ("sk-SENTINEL-1234", "correct horse battery staple", "pässwort-geheim")
TOKEN = "ghp_" + "a1B2" * 9
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA7x+/9Qk3\n" * 20 + "-----END RSA PRIVATE KEY-----"
SECRETS = (*KNOWN, TOKEN, KEY, "Authorization: Basic dXNlcjpwYXNzd29yZA==", "https://me:hunter2hunter2@example.org/x")
WORDS = st.sampled_from([*SECRETS, "plain words", "und ünïcode", "一二三四五", "\n", "a-long-name-with-dashes", "."])


def pieces(text: str, cuts: list[int]) -> list[str]:
    positions = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[start:end] for start, end in pairwise(positions)]


@given(st.lists(WORDS, max_size=12), st.lists(st.integers(0, 10_000), max_size=40))
@example([TOKEN, "and more"], [3])
def test_the_fragments_add_up_to_the_masked_text(words: list[str], cuts: list[int]) -> None:
    redactor = Redactor(KNOWN)
    text = " ".join(words)
    stream = StreamRedactor(redactor)
    delivered = "".join([*(stream.feed(piece) for piece in pieces(text, cuts)), stream.flush()])
    assert delivered == redactor.redact(text)


@pytest.mark.parametrize("secret", SECRETS)
def test_no_split_reveals_part_of_a_secret(secret: str) -> None:
    redactor = Redactor(KNOWN)
    text = f"it is {secret} there, " + "and so on " * 900
    for cut in range(len(secret) + 7):
        stream = StreamRedactor(redactor)
        delivered = stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.flush()
        assert delivered == redactor.redact(text)
        assert MASK in delivered


def test_ordinary_words_are_not_held_back() -> None:
    stream = StreamRedactor(Redactor(KNOWN))
    assert [stream.feed(piece) for piece in ("Hel", "lo wor", "ld, again ", "一二", "三")] == [
        "",
        "Hello ",
        "world, again ",
        "一二",
        "三",
    ]


def test_an_endless_text_is_not_buffered() -> None:
    stream = StreamRedactor(Redactor())
    delivered = "".join(stream.feed("word " * 10) for _ in range(2000))
    assert delivered == "word " * 20_000
    assert len(stream._text) < 5000


async def test_a_thought_and_the_answer_after_it_are_separate_streams() -> None:
    channel = Channel(session_id="s", run_id="r", log=None, redactor=Redactor(KNOWN))
    subscription = channel.subscribe()
    for role, fragment in (
        ("thought", "it is sk-SEN"),
        ("thought", "TINEL-12"),
        ("assistant", "34 is"),
        ("thought", "x"),
    ):
        channel.emit(MessageAdded(role=role, content=fragment, delta=True), step_id="a")
    await channel.publish(MessageAdded(role="assistant", content="34 is"), step_id="a")
    await channel.close()
    texts = [
        (event.role, event.content) async for item in subscription if isinstance(event := item.event, MessageAdded)
    ]
    assert texts == [
        ("thought", "it is "),
        ("thought", "sk-SENTINEL-12"),
        ("assistant", "34 "),
        ("assistant", "is"),
        ("thought", "x"),
        ("assistant", "34 is"),
    ]


async def test_a_subscriber_never_receives_a_secret_split_over_fragments() -> None:
    channel = Channel(session_id="s", run_id="r", log=None, redactor=Redactor(KNOWN))
    subscription = channel.subscribe()
    for fragment in ("the key is sk-SEN", "TINEL-12", "34, keep", " it"):
        channel.emit(MessageAdded(role="assistant", content=fragment, delta=True), step_id="a")
        channel.emit(MessageAdded(role="assistant", content="other", delta=True), step_id="b")
    await channel.publish(MessageAdded(role="assistant", content="the key is sk-SENTINEL-1234, keep it"), step_id="a")
    await channel.close()
    delivered = [envelope.event async for envelope in subscription if envelope.step_id == "a"]
    assert delivered == [
        MessageAdded(role="assistant", content="the key is ", delta=True),
        MessageAdded(role="assistant", content=f"{MASK}, ", delta=True),
        MessageAdded(role="assistant", content="keep ", delta=True),
        MessageAdded(role="assistant", content="it", delta=True),
        MessageAdded(role="assistant", content=f"the key is {MASK}, keep it"),
    ]
