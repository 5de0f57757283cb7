"""Find the passages of a long text that match a query."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern

PASSAGE_CHARS = 900
MAX_CHARS = 12_000
_WORD = r"[^\W_]+"
_HEADING = r"(?m)^#{1,6} +(.+)$"
_CJK = lazy_pattern("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u3040-\u30ff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A chunk of a text with its offset, the heading above it and its score."""

    offset: int
    text: str
    heading: str = ""
    score: float = 0.0


def find_passages(query: str, text: str, *, max_chars: int = MAX_CHARS) -> list[Passage]:
    """Return the best-matching passages in text order; none if no word of the query occurs."""
    terms = set(_tokenize(query))
    chunks = list(_split(text))
    counts = [
        Counter(word for word in _tokenize(f"{chunk.heading}\n{chunk.text}") if word in terms) for chunk in chunks
    ]
    document_frequency = Counter(word for words in counts for word in words)
    scored = [
        replace(chunk, score=_score(words, document_frequency, len(chunks)))
        for chunk, words in zip(chunks, counts, strict=True)
    ]
    chosen: list[Passage] = []
    chars_left = max_chars
    for passage in sorted(scored, key=lambda passage: -passage.score):
        if passage.score <= 0 or (chosen and len(passage.text) > chars_left):
            break
        chosen.append(passage)
        chars_left -= len(passage.text)
    return sorted(chosen, key=lambda passage: passage.offset)


def _score(words: Counter[str], document_frequency: Counter[str], total: int) -> float:
    """Weight rare words above common ones, and a second matching word above a repetition of the first."""
    rarity = {word: math.log(1 + total / document_frequency[word]) for word in words}
    return sum(rarity[word] * count / (count + 1.0) for word, count in words.items()) * math.sqrt(len(words))


def _split(text: str) -> Iterator[Passage]:
    """Split a text into chunks of about the same size, at paragraph, line or word boundaries."""
    headings = [(found.start(), found[1].strip()) for found in re.finditer(_HEADING, text)]
    start, heading, next_heading = 0, "", 0
    while start < len(text):
        end = _chunk_end(text, start)
        while next_heading < len(headings) and headings[next_heading][0] <= start:
            heading = headings[next_heading][1]
            next_heading += 1
        if text[start:end].strip():
            yield Passage(offset=start, text=text[start:end].strip("\n"), heading=heading)
        start = end


def _chunk_end(text: str, start: int) -> int:
    latest = start + PASSAGE_CHARS
    if latest >= len(text):
        return len(text)
    earliest = start + PASSAGE_CHARS // 3
    next_heading = re.compile(r"\n(?=#{1,6} )").search(text, earliest, latest)
    if next_heading:
        return next_heading.end()
    for separator in ("\n\n", "\n", ". ", "。", " "):
        at = text.rfind(separator, earliest, latest)
        if at > 0:
            return at + len(separator)
    return latest


def _tokenize(text: str) -> Iterator[str]:
    """Yield lower-case words without plural s; scripts without spaces yield character bigrams."""
    for found in re.finditer(_WORD, text.lower()):
        word = found[0]
        if not _CJK.search(word):
            yield word if len(word) < 5 or not word.endswith("s") else word[:-1]
        elif len(word) == 1:
            yield word
        else:
            yield from (word[at : at + 2] for at in range(len(word) - 1))
