"""Secrets in a text that arrives in fragments: what may be the beginning of one is held back until it is whole."""

from tooling.safety.secrets.redact import Redactor

# How much of what was said is looked at again, so that a secret is known by what stood before it.
_REMEMBERED = 400


class Fragments:
    """One stream of text; nobody hears more of a secret than its mask, wherever the fragments end."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text = ""
        self._end = 0
        self._said = ""

    def add(self, fragment: str) -> str:
        """Take a fragment in and return what may be said now."""
        self._text += fragment
        return self._say(self._redactor.whole_until(self._text))

    def rest(self) -> str:
        """Return what was held back: the text is over."""
        return self._say(len(self._text))

    def _say(self, end: int) -> str:
        if end <= self._end:
            return ""
        masked = self._redactor.redact(self._text[:end])
        new = masked[_common(masked, self._said) :]
        self._end, self._said = end, masked
        self._forget()
        return new

    def _forget(self) -> None:
        """Let go of what lies far back, between two words and never inside a key."""
        if self._end < 2 * _REMEMBERED:
            return
        start = self._redactor.whole_until(self._text[: self._end - _REMEMBERED])
        self._text, self._end = self._text[start:], self._end - start
        self._said = self._redactor.redact(self._text[: self._end])


def _common(one: str, other: str) -> int:
    """Return how far two texts are the same."""
    if one.startswith(other):
        return len(other)
    return next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))
