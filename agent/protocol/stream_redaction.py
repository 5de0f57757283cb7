"""Secrets in a text that arrives in fragments: what may be the beginning of one is held back until it is whole."""

from tooling.safety.secrets.redact import Redactor

# How much of what was said is looked at again, so that a secret is known by what stood before it.
_CONTEXT_CHARS = 400


class StreamRedactor:
    """One stream of text; nobody hears more of a secret than its mask, wherever the fragments end."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text = ""
        self._end = 0
        self._released = ""

    def feed(self, fragment: str) -> str:
        """Take a fragment in and return what may be said now."""
        self._text += fragment
        return self._release(self._redactor.safe_length(self._text))

    def flush(self) -> str:
        """Return what was held back: the text is over."""
        return self._release(len(self._text))

    def _release(self, end: int) -> str:
        if end <= self._end:
            return ""
        masked = self._redactor.redact(self._text[:end])
        new = masked[_common_prefix_length(masked, self._released) :]
        self._end, self._released = end, masked
        self._drop_old()
        return new

    def _drop_old(self) -> None:
        """Let go of what lies far back, between two words and never inside a key."""
        if self._end < 2 * _CONTEXT_CHARS:
            return
        start = self._redactor.safe_length(self._text[: self._end - _CONTEXT_CHARS])
        self._text, self._end = self._text[start:], self._end - start
        self._released = self._redactor.redact(self._text[: self._end])


def _common_prefix_length(one: str, other: str) -> int:
    """Return how far two texts are the same."""
    if one.startswith(other):
        return len(other)
    return next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))
