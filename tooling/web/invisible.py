"""Characters that carry text which nobody sees: Unicode tags, zero-width runs, direction overrides, controls."""

import re

# Tag characters and supplementary variation selectors can spell out any text; bidirectional overrides and isolates
# show one text and mean another; the rest has no width. Line breaks and tabs stay.
_TAGS = "\U000e0000-\U000e007f"
_SELECTORS = "\U000e0100-\U000e01ef"
_OVERRIDES = "\u202a-\u202e\u2066-\u2069"
_WIDTHLESS = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028\u2029\u2060-\u2065\u206a-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
)
_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_RUN = f"[{_TAGS}{_SELECTORS}{_OVERRIDES}{_WIDTHLESS}{_CONTROLS}]+"

# One of these between two letters is how some scripts and emoji are written.
_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
# Typography, not messages: dropped, and not worth a word unless there are several in a row.
_HARMLESS_LENGTH = 2


def without_invisible(text: str) -> tuple[str, int]:
    """Return the text as it is seen, and how many runs of characters that could hide a message were dropped."""
    if text.isascii() and text.isprintable():
        return text, 0
    found = 0

    def seen(run: re.Match[str]) -> str:
        nonlocal found
        marks = run.group()
        if marks in _JOINERS and run.start() > 0 and run.end() < len(text):
            return marks
        found += _could_hide(marks)
        return "\n" if marks in "\u2028\u2029" else ""

    return re.sub(_RUN, seen, text), found


def _could_hide(marks: str) -> bool:
    return len(marks) > _HARMLESS_LENGTH or any(mark >= "\U000e0000" or mark in "\u202d\u202e" for mark in marks)
