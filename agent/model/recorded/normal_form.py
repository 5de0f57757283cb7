"""Normalize requests for comparison: replace paths, dates, durations and ids, which differ between runs."""

import re
from collections.abc import Callable, Mapping

from tooling.contract.lazy_pattern import lazy_pattern

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_REPLACEMENTS: tuple[tuple[str, str], ...] = (
    # Where a run takes place: folder, platform, date, programs.
    (r"(?s)<environment>.*?</environment>", "<environment/>"),
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
_PATTERNS = tuple((lazy_pattern(pattern, re.IGNORECASE), replacement) for pattern, replacement in _REPLACEMENTS)


def normalize_text(text: str) -> str:
    """Replace everything that differs between two runs of the same task."""
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def map_strings(value: object, change: Callable[[str], str]) -> object:
    """Apply `change` to every string in JSON data."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(key)): map_strings(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [map_strings(item, change) for item in value]
    return value


class Placeholders:
    """Replaces values of this run, such as the workspace path, with placeholders and back."""

    def __init__(self, volatile: Mapping[str, str]) -> None:
        # Longest first: a folder's path starts with its parent's.
        self._pairs = sorted(
            ((value, placeholder) for value, placeholder in volatile.items() if value),
            key=lambda pair: len(pair[0]),
            reverse=True,
        )

    def insert(self, text: str) -> str:
        """Replace this run's values with placeholders."""
        for value, placeholder in self._pairs:
            text = text.replace(value, placeholder)
        return text

    def restore(self, text: str) -> str:
        """Replace placeholders with this run's values."""
        for value, placeholder in self._pairs:
            text = text.replace(placeholder, value)
        return text
