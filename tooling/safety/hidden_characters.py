"""Control characters, and invisible or misleading ones, which legitimate commands do not need."""

from tooling.contract.lazy_pattern import lazy_pattern

# Ordinary commands contain no control characters but tab and line feed.
_CONTROL = lazy_pattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_INVISIBLE = lazy_pattern(
    "[\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200c\u200e\u200f\u2028-\u202f"
    "\u205f-\u206f\u2800\u3000\u3164\ufdd0-\ufdef\ufe00-\ufe0e\ufeff\uffa0\ufff0-\uffff\ud800-\udfff"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
# A zero-width joiner belongs between emoji; anywhere else it hides something.
_JOINER = lazy_pattern(
    "(?<![\u2600-\u27bf\ufe0f\U0001f000-\U0001faff])\u200d|\u200d(?![\u2600-\u27bf\U0001f000-\U0001faff])"
)


def has_control_characters(text: str) -> bool:
    """Return whether the text contains control characters that can mislead a terminal."""
    return _CONTROL.search(text) is not None


def strip_invisible_characters(text: str) -> str:
    """Remove the characters that users cannot see."""
    return _JOINER.sub("", _INVISIBLE.sub("", text))


def has_invisible_characters(text: str) -> bool:
    """Return whether the text contains characters that users cannot see or would misread."""
    return not text.isascii() and (_INVISIBLE.search(text) is not None or _JOINER.search(text) is not None)


def escape_hidden(text: str) -> str:
    """Escape line breaks and every character that could hide text or move the cursor."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _is_plain(char) else char.encode("unicode_escape").decode() for char in text)


def _is_plain(char: str) -> bool:
    return char.isprintable() and not has_invisible_characters(char)
