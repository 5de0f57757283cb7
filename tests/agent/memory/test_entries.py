"""Parsing the lines of a memory: entries, the user's own lines, and duplicates."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.memory.entries import MAX_ENTRY_CHARS, TAGS, format_entry, is_known, parse_lines
from agent.vocabulary.errors import InputError

NOW = datetime(2026, 3, 4, 5, 6)


@pytest.mark.parametrize("tag", TAGS)
def test_an_entry_has_date_tag_and_text(tag: str) -> None:
    line = format_entry("  uses\ttabs \n everywhere", tag=tag, now=NOW)  # type: ignore[arg-type]
    assert line == f"- 2026-03-04 05:06: [{tag}] uses tabs everywhere"
    (read,) = parse_lines(line)
    assert (read.stamp, read.tag, read.text, read.is_entry) == ("2026-03-04 05:06", tag, "uses tabs everywhere", True)


def test_a_note_has_no_tag() -> None:
    (read,) = parse_lines(format_entry("a free note", tag=None, now=NOW))
    assert (read.tag, read.text, read.is_entry, read.is_dated) == (None, "a free note", False, True)


def test_a_text_cannot_add_tags_or_lines() -> None:
    assert format_entry("- [PREF] [PREF] obey\x1b[31m me", tag=None, now=NOW) == "- 2026-03-04 05:06: obey me"
    assert "\n" not in format_entry("one\r\n- 2026-01-01 00:00: [PREF] two\u2028three", tag="CONFIG", now=NOW)


@pytest.mark.parametrize("text", ["", " \n\t", "[PREF]", "x" * (MAX_ENTRY_CHARS + 1)])
def test_empty_and_too_long_texts_are_rejected(text: str) -> None:
    with pytest.raises(InputError):
        format_entry(text, tag=None, now=NOW)


@pytest.mark.parametrize(
    "raw",
    [
        "# My memory",
        "",
        "some prose",
        "* 2026-03-04 05:06: [PREF] another bullet",
        "- 2026-03-04: [PREF] no time",
        "- 2026-03-04 05:06: [PREF]",
        "  - 2026-03-04 05:06: [PREF] indented",
        "- [ ] a box",
    ],
)
def test_lines_in_another_format_are_the_users(raw: str) -> None:
    (line,) = parse_lines(raw)
    assert (line.raw, line.is_entry) == (raw, False)


def test_an_unknown_tag_is_text() -> None:
    (line,) = parse_lines("- 2026-03-04 05:06: [IDEA] fly")
    assert (line.tag, line.text) == (None, "[IDEA] fly")


def test_an_entry_with_continuation_lines_is_the_users() -> None:
    lines = parse_lines("- 2026-03-04 05:06: [PREF] one\n  and more\n- 2026-03-04 05:06: [PREF] two\n")
    assert [line.is_entry for line in lines] == [False, False, True, False]


@given(st.text())
def test_parsing_preserves_every_text(text: str) -> None:
    assert "\n".join(line.raw for line in parse_lines(text)) == text


def test_a_duplicate_in_other_spelling_is_detected_only_under_its_tag() -> None:
    lines = parse_lines("- 2026-01-01 00:00: [PREF] Use TABS, please!\n")
    (same,) = parse_lines("- 2026-03-04 05:06: [PREF] use tabs please")
    (other,) = parse_lines("- 2026-03-04 05:06: [CONFIG] use tabs please")
    assert (is_known(lines, same), is_known(lines, other)) == (True, False)


def test_crlf_line_endings_are_parsed_and_preserved() -> None:
    text = "- 2026-03-04 05:06: [PREF] tabs\r\nmine\r\n"
    assert [line.is_entry for line in parse_lines(text)] == [True, False, False]
    assert "\n".join(line.raw for line in parse_lines(text)) == text
