"""Secrets that arrive in pieces."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.protocol.channel import Channel, StreamRedactor
from agent.protocol.events import MessageSaid
from tooling.safety.secrets.redact import MASK, Redactor

KNOWN = ("sk-SENTINEL-1234", "correct horse battery staple", "pässwort-geheim")
TOKEN = "ghp_" + "a1B2" * 9
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA7x+/9Qk3\n" * 20 + "-----END RSA PRIVATE KEY-----"
SECRETS = (*KNOWN, TOKEN, KEY, "Authorization: Basic dXNlcjpwYXNzd29yZA==", "https://me:hunter2hunter2@example.org/x")
WORDS = st.sampled_from([*SECRETS, "plain words", "und ünïcode", "一二三四五", "\n", "a-long-name-with-dashes", "."])


def pieces(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[start:end] for start, end in pairwise(places)]


@given(st.lists(WORDS, max_size=12), st.lists(st.integers(0, 10_000), max_size=40))
@example([TOKEN, "and more"], [3])
def test_the_fragments_together_are_the_masked_text(words: list[str], cuts: list[int]) -> None:
    redactor = Redactor(KNOWN)
    text = " ".join(words)
    stream = StreamRedactor(redactor)
    said = "".join([*(stream.feed(piece) for piece in pieces(text, cuts)), stream.flush()])
    assert said == redactor.redact(text)


@pytest.mark.parametrize("secret", SECRETS)
def test_no_cut_shows_any_of_a_secret(secret: str) -> None:
    redactor = Redactor(KNOWN)
    text = f"it is {secret} there, " + "and so on " * 900
    for cut in range(len(secret) + 7):
        stream = StreamRedactor(redactor)
        said = stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.flush()
        assert said == redactor.redact(text)
        assert MASK in said


def test_ordinary_words_are_not_waited_for() -> None:
    stream = StreamRedactor(Redactor(KNOWN))
    assert [stream.feed(piece) for piece in ("Hel", "lo wor", "ld, again ", "一二", "三")] == [
        "",
        "Hello ",
        "world, again ",
        "一二",
        "三",
    ]


def test_a_text_without_end_is_not_kept_whole() -> None:
    stream = StreamRedactor(Redactor())
    said = "".join(stream.feed("word " * 10) for _ in range(2000))
    assert said == "word " * 20_000
    assert len(stream._text) < 5000


async def test_a_listener_never_hears_a_key_that_was_cut_in_two() -> None:
    out = Channel(session_id="s", run_id="r", log=None, redactor=Redactor(KNOWN))
    ear = out.subscribe()
    for fragment in ("the key is sk-SEN", "TINEL-12", "34, keep", " it"):
        out.emit(MessageSaid(role="assistant", content=fragment, delta=True), step_id="a")
        out.emit(MessageSaid(role="assistant", content="other", delta=True), step_id="b")
    await out.publish(MessageSaid(role="assistant", content="the key is sk-SENTINEL-1234, keep it"), step_id="a")
    await out.close()
    said = [envelope.event async for envelope in ear if envelope.step_id == "a"]
    assert said == [
        MessageSaid(role="assistant", content="the key is ", delta=True),
        MessageSaid(role="assistant", content=f"{MASK}, ", delta=True),
        MessageSaid(role="assistant", content="keep ", delta=True),
        MessageSaid(role="assistant", content="it", delta=True),
        MessageSaid(role="assistant", content=f"the key is {MASK}, keep it"),
    ]
