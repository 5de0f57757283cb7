"""Finds the translation of a message whose variable parts are already filled in."""

import re
from collections.abc import Mapping

from tooling.contract.lazy_pattern import lazy_pattern

_PLACEHOLDER = lazy_pattern(r"\{(\w+)\}")
# `error: …`, `hint: …` and the indentation of a list are added after a message was built.
_PREFIX = lazy_pattern(r"(\s*)(?:(error|hint|warning|note)(: ))?(.*)", re.DOTALL)
# A value may be a message itself, such as the reason of an error.
_MAX_DEPTH = 3


class Translator:
    """Replaces the messages of a catalogue by their translations.

    `page` has the texts of the page of `agent serve`, some of them single words, which could also be values in
    messages; so nothing else is translated by them.
    """

    def __init__(self, catalog: Mapping[str, str], page: Mapping[str, str] | None = None) -> None:
        self._page = page or {}
        self._exact = {english: text for english, text in catalog.items() if not _PLACEHOLDER.search(english)}
        patterned = (english for english in catalog if english not in self._exact)
        # The template with the most literal text is the most specific one.
        by_weight = sorted(patterned, key=lambda english: len(_PLACEHOLDER.sub("", english)), reverse=True)
        self._patterns = [(_compile(english), catalog[english]) for english in by_weight]

    def translate(self, text: str) -> str:
        """Return the text with every line that is a known message translated."""
        if (whole := self._find(text, 0)) is not None:
            return whole
        return "\n".join(self._translate_line(line) for line in text.split("\n"))

    def translate_page(self, text: str) -> str:
        """Return a text of the page, with variable parts in braces, or a message shown on the page."""
        return self._page.get(text) or self.translate(text)

    def _translate_line(self, line: str) -> str:
        found = _PREFIX.fullmatch(line)
        if found is None:
            return line
        indent, word, colon, message = found.groups(default="")
        translated = self._find(message, 0)
        return f"{indent}{self._exact.get(word, word)}{colon}{message if translated is None else translated}"

    def _find(self, text: str, depth: int) -> str | None:
        if (exact := self._exact.get(text)) is not None:
            return exact
        for pattern, translation in self._patterns:
            if found := pattern.fullmatch(text):
                return _PLACEHOLDER.sub(lambda at: self._value(found[at[1]], depth + 1), translation)
        return None

    def _value(self, text: str, depth: int) -> str:
        translated = self._find(text, depth) if depth < _MAX_DEPTH else None
        return text if translated is None else translated


def _compile(english: str) -> re.Pattern[str]:
    parts = _PLACEHOLDER.split(english)
    literals, names = parts[::2], parts[1::2]
    groups = [f"(?P<{name}>.*?)" if name not in names[:at] else f"(?P={name})" for at, name in enumerate(names)]
    return re.compile("".join(a + b for a, b in zip(map(re.escape, literals), [*groups, ""], strict=True)), re.DOTALL)
