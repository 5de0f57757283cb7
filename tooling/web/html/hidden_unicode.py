"""Characters that carry text which nobody sees: Unicode tags, zero-width runs, direction overrides, controls."""

import re

# Tag characters and supplementary variation selectors can spell out any text; bidirectional overrides and isolates
# show one text and mean another; the rest has no width. Line breaks and tabs stay.
_TAGS = "\U000e0000-\U000e0fff"
_OVERRIDES = "\u202a-\u202e\u2066-\u2069"
_ZERO_WIDTH = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028\u2029\u2060-\u2065\u206a-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
)
_NOTATION = "\U00013430-\U00013440\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_RUN = f"[{_TAGS}{_OVERRIDES}{_ZERO_WIDTH}{_NOTATION}{_CONTROLS}]+"

# One of these between two letters is how some scripts and emoji are written; nobody writes ASCII with them.
_JOINERS = "\u200c\u200d"
_STYLES = "\ufe0e\ufe0f"
_KEYCAP = "\u20e3"
# Typography, not messages: dropped, and not worth a word unless there are several in a row.
_HARMLESS_LENGTH = 2


def strip_invisible(text: str) -> tuple[str, int]:
    """Return the text as it is seen, and how many runs of characters that could hide a message were dropped."""
    if text.isascii() and text.isprintable():
        return text, 0
    found = 0

    def seen(run: re.Match[str]) -> str:
        nonlocal found
        marks = run.group()
        if len(marks) == 1 and _is_spelling(marks, text[max(run.start() - 1, 0)], text[run.end() : run.end() + 1]):
            return marks
        found += _could_hide(marks)
        return "\n" if marks in "\u2028\u2029" else ""

    return re.sub(_RUN, seen, text), found


def _is_spelling(mark: str, before: str, after: str) -> bool:
    if mark in _STYLES:
        return after == _KEYCAP or (bool(after) and not before.isascii())
    return mark in _JOINERS and bool(after) and not before.isascii() and not after.isascii()


def _could_hide(marks: str) -> bool:
    return len(marks) > _HARMLESS_LENGTH or any(mark >= "\U000e0000" or mark in "\u202d\u202e" for mark in marks)
