"""The parts of a long text that are about something: for a reader who asks instead of turning pages."""

import math
import re
from collections import Counter
from collections.abc import Iterator

from tooling.contract.fast_dataclass import dataclass

PASSAGE_CHARS = 900
MAX_CHARS = 12_000
_WORD = r"[^\W_]+"
_HEADING = r"(?m)^#{1,6} +(.+)$"
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u3040-\u30ff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of a text: where it stands, under which heading, and how well it fits."""

    offset: int
    text: str
    heading: str = ""
    score: float = 0.0


def find_passages(query: str, text: str, *, most_chars: int = MAX_CHARS) -> list[Passage]:
    """Return the passages that fit a query best, in the order of the text; none when no word of it occurs."""
    wanted = set(_tokenize(query))
    pieces = list(_split(text))
    counted = [
        Counter(word for word in _tokenize(f"{piece.heading}\n{piece.text}") if word in wanted) for piece in pieces
    ]
    spread = Counter(word for words in counted for word in words)
    rated = [
        Passage(offset=piece.offset, text=piece.text, heading=piece.heading, score=_score(words, spread, len(pieces)))
        for piece, words in zip(pieces, counted, strict=True)
    ]
    chosen: list[Passage] = []
    room = most_chars
    for passage in sorted(rated, key=lambda one: -one.score):
        if passage.score <= 0 or (chosen and len(passage.text) > room):
            break
        chosen.append(passage)
        room -= len(passage.text)
    return sorted(chosen, key=lambda one: one.offset)


def _score(words: Counter[str], spread: Counter[str], total: int) -> float:
    """Weigh rare words more than common ones, and a second word more than the same one twice."""
    rarity = {word: math.log(1 + total / spread[word]) for word in words}
    return sum(rarity[word] * count / (count + 1.0) for word, count in words.items()) * math.sqrt(len(words))


def _split(text: str) -> Iterator[Passage]:
    """Cut a text between paragraphs, or lines, or words, into pieces of about the same size."""
    headings = [(found.start(), found[1].strip()) for found in re.finditer(_HEADING, text)]
    start, heading, coming = 0, "", 0
    while start < len(text):
        end = _chunk_end(text, start)
        while coming < len(headings) and headings[coming][0] <= start:
            heading = headings[coming][1]
            coming += 1
        if text[start:end].strip():
            yield Passage(offset=start, text=text[start:end].strip("\n"), heading=heading)
        start = end


def _chunk_end(text: str, start: int) -> int:
    far = start + PASSAGE_CHARS
    if far >= len(text):
        return len(text)
    near = start + PASSAGE_CHARS // 3
    next_heading = re.compile(r"\n(?=#{1,6} )").search(text, near, far)
    if next_heading:
        return next_heading.end()
    for mark in ("\n\n", "\n", ". ", "。", " "):
        at = text.rfind(mark, near, far)
        if at > 0:
            return at + len(mark)
    return far


def _tokenize(text: str) -> Iterator[str]:
    """Yield words without regard to case; scripts without blanks give every two neighbouring characters."""
    for found in re.finditer(_WORD, text.lower()):
        word = found[0]
        if not _CJK.search(word):
            yield word if len(word) < 5 or not word.endswith("s") else word[:-1]
        elif len(word) == 1:
            yield word
        else:
            yield from (word[at : at + 2] for at in range(len(word) - 1))
