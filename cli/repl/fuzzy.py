"""Fuzzy matching: the typed text may omit characters."""

import re
from collections.abc import Callable, Sequence

from cli.repl.slash_commands import Candidate


def fuzzy_span(query: str) -> Callable[[str], int]:
    """Return a function that measures how far the characters of a query, in order, are spread in a text.

    It returns 0 if the text does not contain them.
    """
    pattern = re.compile(".*?".join(map(re.escape, query)), re.DOTALL)

    def span(text: str) -> int:
        found = pattern.search(text)
        return found.end() - found.start() if found else 0

    return span


def filter_candidates(candidates: Sequence[Candidate], query: str) -> list[Candidate]:
    """Return the candidates that match all words of a query: complete words first, then the closest fuzzy matches."""
    words = query.lower().split()
    spans_of = [fuzzy_span(word) for word in words]
    whole: list[Candidate] = []
    fuzzy: list[tuple[int, Candidate]] = []
    for candidate in candidates:
        text = " ".join(candidate).lower()
        if all(word in text for word in words):
            whole.append(candidate)
        elif all(spans := [span(text) for span in spans_of]):
            fuzzy.append((sum(spans), candidate))
    return [*whole, *(candidate for _, candidate in sorted(fuzzy, key=lambda match: match[0]))]
