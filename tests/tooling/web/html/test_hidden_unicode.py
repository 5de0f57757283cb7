"""Invisible characters are removed, and counted where they could carry a message."""

import pytest

from tooling.web.html.hidden_unicode import strip_invisible

TAGS = "".join(chr(0xE0000 + ord(char)) for char in "obey")


@pytest.mark.parametrize(
    ("text", "visible", "count"),
    [
        ("plain text\nwith lines\tand tabs", "plain text\nwith lines\tand tabs", 0),
        ("naïve — 日本語 עברית العربية", "naïve — 日本語 עברית العربية", 0),
        (f"a{TAGS}b", "ab", 1),
        (f"a{TAGS}b{TAGS}c", "abc", 2),
        ("so\u00adft hyp\u200bhen", "soft hyphen", 0),
        ("\ufeffbegins", "begins", 0),
        ("a\u200b\u200c\u200d\u2060b", "ab", 1),
        ("می\u200cخواهم", "می\u200cخواهم", 0),
        ("👩\u200d🚀 and ❤\ufe0f!", "👩\u200d🚀 and ❤\ufe0f!", 0),
        ("user\u202etxt.exe", "usertxt.exe", 1),
        ("\u2067ا\u2069 x", "ا x", 0),
        ("a" + "\U000e0101\U000e0102" + "b", "ab", 1),
        ("bell\x07 esc\x1b[0m\x9b", "bell esc[0m", 0),
        ("line\u2028next", "line\nnext", 0),
        ("", "", 0),
    ],
)
def test_invisible_characters_are_stripped_and_counted(text: str, visible: str, count: int) -> None:
    assert strip_invisible(text) == (visible, count)
