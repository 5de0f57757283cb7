"""Fuzzy matching: what is typed may leave out characters."""

import re
from collections.abc import Callable, Sequence

from cli.repl.slash_commands import Candidate


def fuzzy_matcher(query: str) -> Callable[[str], bool]:
    """Return a test whether a text contains the characters of a query in their order."""
    pattern = re.compile(".*?".join(map(re.escape, query)), re.DOTALL)
    return lambda text: pattern.search(text) is not None


def filter_candidates(candidates: Sequence[Candidate], query: str) -> list[Candidate]:
    """Return the candidates that match all words of a query: complete words first, then fuzzy matches."""
    words = query.lower().split()
    matchers = [fuzzy_matcher(word) for word in words]
    whole: list[Candidate] = []
    fuzzy: list[Candidate] = []
    for candidate in candidates:
        text = " ".join(candidate).lower()
        if all(word in text for word in words):
            whole.append(candidate)
        elif all(is_match(text) for is_match in matchers):
            fuzzy.append(candidate)
    return [*whole, *fuzzy]
