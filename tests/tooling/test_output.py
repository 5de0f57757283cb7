"""Decoding, sanitizing and trimming of tool output."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import assert_linear
from tooling.output import (
    FETCH_MAX_CHARS,
    GREP_TIMEOUT_MS,
    OUTPUT_HEAD_LEN,
    OUTPUT_TAIL_LEN,
    OUTPUT_TRIM_LEN,
    TOOL_TIMEOUT_MS,
    WEB_FETCH_TIMEOUT_MS,
    TrimLengths,
    count_lines,
    decode_output,
    output_chars_for,
    sanitize_output,
    trim_fetch_output,
    trim_output,
)


def test_the_documented_limits_have_not_changed() -> None:
    lengths = (TOOL_TIMEOUT_MS, GREP_TIMEOUT_MS, WEB_FETCH_TIMEOUT_MS, OUTPUT_TRIM_LEN, OUTPUT_HEAD_LEN)
    assert lengths == (120_000, 30_000, 90_000, 3000, 1500)
    assert (OUTPUT_TAIL_LEN, FETCH_MAX_CHARS) == (1000, 80_000)
    lengths_of_default = TrimLengths()
    assert (lengths_of_default.limit, lengths_of_default.head, lengths_of_default.tail) == (3000, 1500, 1000)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        (None, ""),
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("a\U000e0072\U000e006d b\U000e0020c", "a bc"),
        (
            "\u2764\ufe0f, \u845b\U000e0100 and \U0001f600\ufe01\U000e0121\U000e0155",
            "\u2764\ufe0f, \u845b\U000e0100 and \U0001f600",
        ),
        (
            "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
            "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        ),
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
    lines, size = count_lines(text), len(text.encode("utf-8", "surrogatepass"))
    notice = f" characters cut, the whole output was {lines} lines, {size} bytes; full output: F ...]\n"
    head, _, rest = trimmed.partition("\n[... ")
    while notice not in rest.partition("\n[... ")[0] and "\n[... " in rest:
        more, _, rest = rest.partition("\n[... ")
        head += "\n[... " + more
    cut, _, tail = rest.partition(notice)
    assert (text.startswith(head), text.endswith(tail)) == (True, True)
    assert int(cut) == len(text) - len(head) - len(tail)
    assert (len(head) <= lengths.head, len(tail) <= lengths.tail) == (True, True)


def test_output_is_cut_at_line_ends_and_keeps_more_of_its_end() -> None:
    text = "".join(f"line {number}\n" for number in range(10_000))
    trimmed = trim_output(text, TrimLengths.for_limit(16_000), hint="full output: F")
    head, notice, tail = (
        trimmed.split("\n[... ")[0],
        trimmed.split("[... ")[1].split(" ...]")[0],
        trimmed.split("...]\n")[1],
    )
    assert (head.splitlines()[0], head.splitlines()[-1] in text.splitlines()) == ("line 0", True)
    assert tail.startswith("line ")
    assert tail.endswith("line 9999\n")
    assert len(tail) > 1.9 * len(head)
    assert 14_000 < len(trimmed) < 16_000
    assert notice.endswith("the whole output was 10000 lines, 98890 bytes; full output: F")


@pytest.mark.parametrize(
    ("tokens", "chars"),
    [(None, 16_000), (8000, 8000), (32_000, 16_000), (128_000, 20_480), (200_000, 32_000), (1_000_000, 40_000)],
)
def test_the_model_sees_more_of_an_output_if_its_window_is_larger(tokens: int | None, chars: int) -> None:
    assert output_chars_for(tokens) == chars


@pytest.mark.parametrize("unit", ["word ", "\x1b[31m", "\x1b]", "\x1b[1", "a\r", "a\x08", "\x9d", "\r"])
def test_a_megabyte_is_sanitized_in_linear_time(unit: str) -> None:
    assert_linear(lambda size: sanitize_output((unit * size)[:size]), 1_000_000)


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
