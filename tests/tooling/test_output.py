"""Decoding, sanitizing and trimming of tool output."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooling.output import (
    FETCH_MAX_CHARS,
    GREP_TIMEOUT_MS,
    OUTPUT_HEAD_LEN,
    OUTPUT_TAIL_LEN,
    OUTPUT_TRIM_LEN,
    TOOL_TIMEOUT_MS,
    WEB_FETCH_TIMEOUT_MS,
    TrimLengths,
    decode_output,
    sanitize_output,
    trim_fetch_output,
    trim_output,
)


def test_the_documented_limits_have_not_changed() -> None:
    lengths = (TOOL_TIMEOUT_MS, GREP_TIMEOUT_MS, WEB_FETCH_TIMEOUT_MS, OUTPUT_TRIM_LEN, OUTPUT_HEAD_LEN)
    assert lengths == (120_000, 30_000, 90_000, 3000, 1500)
    assert (OUTPUT_TAIL_LEN, FETCH_MAX_CHARS) == (1000, 80_000)
    assert TrimLengths.for_limit(3000) == TrimLengths()


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        (None, ""),
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[2K\x1b[1Gline", "line"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x1b\\text", "text"),
        ("\x1b]0;no end\nnext line", "\nnext line"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("\x9b31mred", "red"),
        ("\x1b(Bplain", "plain"),
        ("10%\r50%\r100%\ndone\n", "100%\ndone\n"),
        ("dos\r\nlines\r\n", "dos\nlines\n"),
        ("N\x08NA\x08A", "NA"),
        ("a\x00b\x07c\x7fd", "abcd"),
        ("name\udcff", r"name\udcff"),
        ("äöü 漢字 🙂", "äöü 漢字 🙂"),
    ],
)
def test_escape_sequences_and_control_characters_are_removed(raw: str | None, clean: str) -> None:
    assert sanitize_output(raw) == clean


def test_undecodable_bytes_stay_visible() -> None:
    assert decode_output(b"a\xffb\xc3\xa4") == r"a\xffbä"


@given(st.text(alphabet=st.characters(), max_size=300))
def test_sanitized_text_is_encodable_printable_and_stable(text: str) -> None:
    clean = sanitize_output(text)
    clean.encode("utf-8")
    assert not any(char < " " and char not in "\n\t" for char in clean)
    assert sanitize_output(clean) == clean


@given(st.text(max_size=400), st.integers(0, 200))
def test_the_trim_notice_gives_the_exact_number_of_characters_cut(text: str, limit: int) -> None:
    lengths = TrimLengths.for_limit(limit)
    trimmed = trim_output(text, lengths, hint="full output: F")
    if len(text) <= limit:
        assert trimmed == text
        return
    cut = len(text) - lengths.head - lengths.tail
    tail = text[len(text) - lengths.tail :]
    assert trimmed == f"{text[: lengths.head]}\n[... {cut} characters cut; full output: F ...]\n{tail}"


@pytest.mark.parametrize("unit", ["word ", "\x1b[31m", "\x1b]", "\x1b[1", "a\r", "a\x08", "\x9d", "\r"])
def test_a_megabyte_is_sanitized_in_linear_time(unit: str) -> None:
    text = (unit * 1_000_000)[:1_000_000]
    started = time.thread_time()
    sanitize_output(text)
    # CPU time: far above what a linear scan takes, far below anything quadratic.
    assert time.thread_time() - started < 1.0


def test_truncated_fetch_output_gives_limit_reason_and_original_length() -> None:
    cut = trim_fetch_output("x" * 90_000, reason="trafilatura")
    assert len(cut) == FETCH_MAX_CHARS == 80_000
    assert cut.endswith("[... cut at 80000 characters (trafilatura); the whole text has 90000]")
    assert "(limit exceeded)" in trim_fetch_output("x" * 90_000)
    assert trim_fetch_output("short") == "short"
    assert trim_fetch_output("x" * 80_000) == "x" * 80_000
    assert trim_fetch_output("x" * 100, limit=10) == "x" * 10


def test_only_control_characters_are_removed() -> None:
    controls = {*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0)}
    kept = {code for code in range(0x3000) if sanitize_output(f"a{chr(code)}b") == f"a{chr(code)}b"}
    assert kept == set(range(0x3000)) - controls
