"""What is left of web pages: facts kept, frame gone, and how many characters a fact takes, against two other ways."""

from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser

import trafilatura

from bench.measure import Figure
from tests.tooling.web.sample_pages import Page, corpus
from tooling.web.html.extract import decoded, extract


@dataclass(frozen=True, slots=True, kw_only=True)
class Yield:
    """What one way of reading leaves of all pages."""

    facts: int
    frame: int
    chars: int

    @property
    def chars_a_fact(self) -> float:
        return self.chars / self.facts


def pages() -> list[Figure]:
    """Read the corpus of tests/data/pages with fetch_page's extraction, plain trafilatura, and tags stripped."""
    every = corpus()
    whole = sum(len(page.keep) for page in every)
    frame = sum(len(page.gone) for page in every)
    ours = _yield(every, lambda page: extract(page.html, url=page.url).markdown)
    plain = _yield(every, lambda page: trafilatura.extract(page.html, url=page.url) or "")
    bare = _yield(every, lambda page: _stripped(decoded(page.html)))
    others = f"plain trafilatura {{}}, tags stripped {{}}, of {{}} on {len(every)} pages"
    return [
        Figure(
            what="facts lost from web pages",
            measured=whole - ours.facts,
            limit=0,
            unit="",
            detail=others.format(whole - plain.facts, whole - bare.facts, whole),
        ),
        Figure(
            what="pieces of their frame that are left",
            measured=ours.frame,
            limit=0,
            unit="",
            detail=others.format(plain.frame, bare.frame, frame),
        ),
        _against("plain trafilatura", ours, plain, 1.0),
        _against("tags stripped", ours, bare, 0.75),
    ]


def _yield(every: list[Page], read: Callable[[Page], str]) -> Yield:
    texts = [(page, read(page)) for page in every]
    return Yield(
        facts=sum(len(page.kept(text)) for page, text in texts),
        frame=sum(len(page.left_over(text)) for page, text in texts),
        chars=sum(len(text) for _, text in texts),
    )


def _against(name: str, ours: Yield, theirs: Yield, limit: float) -> Figure:
    return Figure(
        what=f"characters for each fact kept, against {name}",
        measured=ours.chars_a_fact / theirs.chars_a_fact,
        limit=limit,
        unit="×",
        detail=f"{ours.chars} for {ours.facts} against {theirs.chars} for {theirs.facts}",
    )


class _Stripper(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in ("script", "style", "title")

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in ("script", "style", "title") and self._unseen > 0

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.words += data.split()


def _stripped(html: str) -> str:
    stripper = _Stripper()
    stripper.feed(html)
    return " ".join(stripper.words)
