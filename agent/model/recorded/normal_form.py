"""Requests without what changes from run to run: places, dates, durations, ids."""

import re
from collections.abc import Callable, Mapping

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_REPLACEMENTS: tuple[tuple[str, str], ...] = (
    (r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "<uuid>"),
    (r"\b(?:call|toolu|chatcmpl|msg)_[0-9A-Za-z_-]+", "<call>"),
    (r"/tmp/tmp[a-z0-9_]{8}\b", "<temporary>"),
    (r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\s+(?=\d|[A-Z])", ""),
    (rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTH},?\s+\d{{4}}\b", "<date>"),
    (rf"\b{_MONTH}\s+\d{{1,2}}(?:,?\s+\d{{4}})?\b", "<date>"),
    (r"\b\d{4}-\d{2}-\d{2}(?!\d)", "<date>"),
    (r"(?:\b|(?<=>)T)\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?(?:Z|UTC|[+-]\d{2}:?\d{2}))?\b", "<time>"),
    (r"\b1[6-9]\d{8}(?:\.\d+)?\b", "<time>"),
    (r"\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|mins?|minutes?)\b", "<duration>"),
    (r"\b(pid|process)([ =:#]*)\d+\b", r"\1\2<pid>"),
    (r"\b0x[0-9a-fA-F]{6,}\b", "<address>"),
)
_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), put) for pattern, put in _REPLACEMENTS)


def normalize_text(text: str) -> str:
    """Return the text with everything that differs between two runs of the same task made equal."""
    for pattern, put in _PATTERNS:
        text = pattern.sub(put, text)
    return text


def map_strings(value: object, change: Callable[[str], str]) -> object:
    """Return JSON data with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(key)): map_strings(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [map_strings(item, change) for item in value]
    return value


class Placeholders:
    """Swaps this run's own words, such as its workspace's path, for lasting ones and back."""

    def __init__(self, volatile: Mapping[str, str]) -> None:
        # The longest first: a folder's path begins with its parent's.
        self._pairs = sorted(
            ((own, lasting) for own, lasting in volatile.items() if own), key=lambda pair: len(pair[0]), reverse=True
        )

    def insert(self, text: str) -> str:
        """Return the text with lasting words."""
        for own, lasting in self._pairs:
            text = text.replace(own, lasting)
        return text

    def restore(self, text: str) -> str:
        """Return the text with this run's words."""
        for own, lasting in self._pairs:
            text = text.replace(lasting, own)
        return text
