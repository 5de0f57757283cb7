"""Secrets are masked, everything else is left alone."""

import base64
import time
import uuid
from pathlib import Path
from urllib.parse import quote

import pytest

from tooling.safety.redact import Redactor

KEY = "correct+horse/battery=staple"

TOKENS = [
    "sk-" + "a1" * 12,
    "sk-proj-" + "Ab_-" * 10,
    "sk_live_" + "a1" * 12,
    "ghp_" + "a1B2" * 9,
    "gho_" + "a1B2" * 9,
    "github_pat_" + "a1B2_" * 12,
    "glpat-" + "a1B2" * 5,
    "AKIA" + "ABCDEFGH12345678",
    "ASIA" + "ABCDEFGH12345678",
    "AIza" + "a1B2c" * 7,
    "ya29." + "a1B2" * 8,
    "GOCSPX-" + "a1B2" * 7,
    "xoxb-1234567890-abcdef",
    "xapp-1-A1234567890",
    "npm_" + "a1B2" * 9,
    "pypi-" + "AgEIcHlwaS5vcmc" * 5,
    "hf_" + "a1B2" * 9,
    "gsk_" + "a1B2" * 12,
    "xai-" + "a1B2" * 12,
    "r8_" + "a" * 37,
    "tvly-" + "a1B2" * 8,
    "SG." + "a1B2" * 5 + "." + "a1B2" * 10,
    "dop_v1_" + "a1" * 32,
    "shpat_" + "a1" * 16,
    "dckr_pat_" + "a1B2" * 7,
    "hvs." + "a1B2" * 8,
    "lin_api_" + "a1B2" * 10,
    "nvapi-" + "a1B2" * 15,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE (the end was cut off)",
]

HARMLESS = [
    "d670460b4b4aece5915caf5c68d12f560a9fe3e4",
    "sha256:" + "0f" * 32,
    str(uuid.UUID(int=2**127 + 12345)),
    "task-force-of-the-whole-risk-department",
    "https://example.org/a/very-long-path-with-many-words?q=1",
    "the bearer authentication mechanism",
    "src/components/some-really-long-component-name.tsx",
    "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----",
    "AKIAlike but no key",
    "user@example.org: mail",
]


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_of_known_makers_are_masked(token: str) -> None:
    masked = Redactor().redact(f"before '{token}'")
    assert masked.startswith("before '[REDACTED]")
    assert token[8:] not in masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Authorization: Bearer abc.DEF-123456789", "Authorization: Bearer [REDACTED]"),
        ("authorization: basic dXNlcjpwYXNzMTIz", "authorization: basic [REDACTED]"),
        ("postgres://me:hunter22@db/x", "postgres://me:[REDACTED]@db/x"),
        ("aws_secret_access_key = " + "a1/+" * 10, "aws_secret_access_key = [REDACTED]"),
        ('"AWS_SECRET_ACCESS_KEY": "' + "a1/+" * 10 + '"', '"AWS_SECRET_ACCESS_KEY": "[REDACTED]"'),
    ],
)
def test_what_surrounds_a_secret_stays(text: str, masked: str) -> None:
    assert Redactor().redact(text) == masked


@pytest.mark.parametrize("text", HARMLESS)
def test_hashes_and_ordinary_words_survive(text: str) -> None:
    assert Redactor([KEY]).redact(text) == text


def test_known_values_are_masked_in_every_form() -> None:
    redactor = Redactor([KEY])
    for form in (KEY, quote(KEY, safe=""), quote(KEY)):
        assert redactor.redact(f"a {form} b") == "a [REDACTED] b"
    for before in ("", "u", "us", "user:"):
        encoded = base64.b64encode(f"{before}{KEY}\n".encode()).decode()
        masked = redactor.redact(encoded)
        assert "[REDACTED]" in masked
        assert len(masked) < 24


def test_short_values_are_not_taken_for_secrets() -> None:
    assert Redactor(["test", ""]).redact("a test") == "a test"


@pytest.mark.parametrize("unit", ["plain words, ", "sk-", "eyJ", "://a:b", "bearer ", "-----BEGIN ", "a" * 20 + " "])
def test_a_megabyte_takes_no_time(unit: str) -> None:
    text = (unit * 400_000)[:1_000_000]
    started = time.perf_counter()
    Redactor([KEY]).redact(text)
    assert time.perf_counter() - started < 1.0


def test_a_file_is_masked_in_place_whatever_its_size(tmp_path: Path) -> None:
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
