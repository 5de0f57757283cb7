"""Secrets are masked, everything else is unchanged."""

import base64
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import assert_linear, cpu_seconds
from tests.tooling.safety.secrets.secret_samples import HARMLESS, IN_CONTEXT, TOKENS
from tooling.safety.secrets.patterns import ANCHORED_PATTERNS, PREFIXED_PATTERNS, TOKEN_PATTERNS, TokenPattern
from tooling.safety.secrets.redact import Redactor

KEY = "correct+horse/battery=staple"


def test_there_are_enough_samples() -> None:
    assert len(TOKENS) + len(IN_CONTEXT) >= 80
    assert len(HARMLESS) >= 50
    assert 40 <= len(TOKEN_PATTERNS) + len(PREFIXED_PATTERNS) + len(ANCHORED_PATTERNS) <= 70


@pytest.mark.parametrize(
    "around", ["{}", "before '{}'", "KEY={}\n", '{{"key":"{}"}}', "a,{},b", "ключ {} ключ", "-{}", "x\\n-{}"]
)
def test_tokens_of_known_providers_are_masked(around: str) -> None:
    for token in TOKENS:
        masked = Redactor().redact(around.format(token))
        assert "[REDACTED]" in masked
        # Only the prefix of the provider may remain.
        assert token[-12:] not in masked
        assert token[10:] not in masked


@pytest.mark.parametrize("secret", TOKEN_PATTERNS, ids=lambda secret: secret.prefixes[0])
def test_every_pattern_has_a_sample(secret: TokenPattern) -> None:
    assert any(re.match(secret.regex, token) and token.startswith(secret.prefixes) for token in TOKENS)


@pytest.mark.parametrize(("text", "masked"), IN_CONTEXT)
def test_text_around_a_secret_is_unchanged(text: str, masked: str) -> None:
    assert Redactor().redact(text) == masked


@pytest.mark.parametrize("text", HARMLESS)
def test_hashes_and_ordinary_words_are_not_masked(text: str) -> None:
    for around in (text, f"x {text}\n", f'"{text}"'):
        assert Redactor([KEY]).redact(around) == around


def test_mask_known_masks_only_known_values() -> None:
    text = f"curl https://me:$(id)@h -H '{TOKENS[0]}' {KEY}"
    assert Redactor([KEY]).mask_known(text) == text.replace(KEY, "[REDACTED]")


@given(st.binary(min_size=12, max_size=40), st.binary(max_size=9), st.binary(max_size=9))
def test_a_known_value_is_found_in_base64_at_any_offset(value: bytes, before: bytes, after: bytes) -> None:
    key = value.hex()
    encoded = base64.b64encode(before + key.encode() + after).decode()
    masked = Redactor([key]).redact(encoded)
    assert "[REDACTED]" in masked
    # What is left of the key's own characters is at most a part of one at each end.
    assert len(masked.replace("[REDACTED]", "")) <= len(encoded) - len(key) * 4 // 3 + 5


def test_known_values_are_masked_in_every_form() -> None:
    redactor = Redactor([KEY])
    for form in (KEY, quote(KEY, safe=""), quote(KEY)):
        assert redactor.redact(f"a {form} b") == "a [REDACTED] b"
    for before in ("", "u", "us", "user:"):
        encoded = base64.b64encode(f"{before}{KEY}\n".encode()).decode()
        masked = redactor.redact(encoded)
        assert "[REDACTED]" in masked
        assert len(masked) < 24


def test_a_known_value_is_found_inside_json() -> None:
    key = 'quote"back\\slash\nline-é'
    for text in (json.dumps({"key": key}), json.dumps({"key": key}, ensure_ascii=False)):
        assert Redactor([key]).redact(text) == '{"key": "[REDACTED]"}'


def test_short_values_are_not_masked() -> None:
    assert Redactor(["test", ""]).redact("a test") == "a test"


HOSTILE = (
    *("sk-", "eyJ", "://a:b", "bearer ", "Bearer a1", "-----BEGIN ", "a" * 20 + " ", "sk-" + "ab" * 10 + " ", "SG."),
    *(
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "Authorization: ",
        "secret_access_key=",
        "hooks.slack.com/services/",
        "ghp_",
    ),
    *(
        ".aaaaaaaaaaaaaaaaaaaa",
        "\\nsk-aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "1234567890:AA",
        "https://a:b@",
        "%3Dghp_aaaaaaaaaaaaaaaa",
    ),
)


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_input_is_masked_in_linear_time(unit: str) -> None:
    redactor = Redactor([KEY])
    assert_linear(lambda size: redactor.redact((unit * size)[:size]), 400_000)


@pytest.mark.parametrize(
    "unit", ["plain words, ", "def name(self, value: str) -> None:\n", "GET /api/v1/users/17 200 3.1ms\n"]
)
def test_a_clean_text_is_masked_faster_than_its_words_are_found(unit: str) -> None:
    text, redactor, words = (unit * 100_000)[:1_000_000], Redactor([KEY]), re.compile(r"\w+")
    assert cpu_seconds(lambda: redactor.redact(text)) < cpu_seconds(lambda: words.findall(text))


def test_a_large_file_is_masked_in_place(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow\n" * 500 + "-----END RSA PRIVATE KEY-----\n"
    line = f"token {KEY} and \udcff\n".encode("utf-8", "surrogateescape")
    path.write_bytes(line * 60_000 + key.encode() + line * 10)
    Redactor([KEY]).redact_file(path)
    masked = path.read_bytes()
    assert (
        masked
        == line.replace(KEY.encode(), b"[REDACTED]") * 60_000
        + b"[REDACTED]\n"
        + line.replace(KEY.encode(), b"[REDACTED]") * 10
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]


def test_masking_in_chunks_gives_the_same_result() -> None:
    redactor = Redactor(("correct-horse-battery",))
    key = (
        "-----BEGIN PRIVATE KEY-----\n"
        + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n" * 20
        + "-----END PRIVATE KEY-----\n"
    )
    lines = [f"line {n} of many\n" for n in range(60_000)]
    for at in range(5_000, 60_000, 5_000):
        lines[at] = f"the word is correct-horse-battery\n{key}"
    text = "".join(lines)
    assert "".join(redactor.redact_chunks(text)) == redactor.redact(text)
    assert "".join(redactor.redact_chunks("x" * 500_000)) == "x" * 500_000
    assert list(redactor.redact_chunks("")) == []


def test_a_text_that_was_clean_is_masked_once_its_value_is_learned() -> None:
    redactor = Redactor()
    assert [redactor.redact("hunter2-hunter2") for _ in range(2)] == ["hunter2-hunter2"] * 2
    redactor.learn(["hunter2-hunter2"])
    assert [redactor.redact("hunter2-hunter2") for _ in range(2)] == ["[REDACTED]"] * 2
