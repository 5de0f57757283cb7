"""Strip invisible Unicode characters: tags, zero-width runs, bidi overrides, control characters."""

import re

# Tag characters and supplementary variation selectors can spell any text; bidirectional overrides and isolates display
# a different text than they contain; the rest has no width. Line breaks and tabs stay.
_TAGS = "\U000e0000-\U000e0fff"
_OVERRIDES = "\u202a-\u202e\u2066-\u2069"
_ZERO_WIDTH = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028\u2029\u2060-\u2065\u206a-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
)
_NOTATION = "\U00013430-\U00013440\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_RUN = f"[{_TAGS}{_OVERRIDES}{_ZERO_WIDTH}{_NOTATION}{_CONTROLS}]+"

# A single one between two characters is part of the spelling of some scripts and emoji, but never of ASCII text.
_JOINERS = "\u200c\u200d"
_STYLES = "\ufe0e\ufe0f"
_KEYCAP = "\u20e3"
# Short runs are typography: they are dropped but not counted.
_HARMLESS_LENGTH = 2


def strip_invisible(text: str) -> tuple[str, int]:
    """Return the visible text and the number of removed runs that could have hidden a message."""
    if text.isascii() and text.isprintable():
        return text, 0
    count = 0

    def visible(run: re.Match[str]) -> str:
        nonlocal count
        chars = run.group()
        if len(chars) == 1 and _is_spelling(chars, text[max(run.start() - 1, 0)], text[run.end() : run.end() + 1]):
            return chars
        count += _could_hide_text(chars)
        return "\n" if chars in "\u2028\u2029" else ""

    return re.sub(_RUN, visible, text), count


def _is_spelling(char: str, before: str, after: str) -> bool:
    if char in _STYLES:
        return after == _KEYCAP or (bool(after) and not before.isascii())
    return char in _JOINERS and bool(after) and not before.isascii() and not after.isascii()


def _could_hide_text(chars: str) -> bool:
    return len(chars) > _HARMLESS_LENGTH or any(char >= "\U000e0000" or char in "\u202d\u202e" for char in chars)
