"""Measure extraction of web pages: facts kept, boilerplate removed, characters per fact, against two alternatives."""

from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser

import trafilatura

from bench.measure import BenchResult
from tests.tooling.web.sample_pages import SamplePage, load_pages
from tooling.web.html.extract import decode_html, extract


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionScore:
    """The result of one extraction method on all pages."""

    facts: int
    boilerplate: int
    chars: int

    @property
    def chars_per_fact(self) -> float:
        return self.chars / self.facts


def pages() -> list[BenchResult]:
    """Extract the corpus of tests/data/pages with fetch_page, plain trafilatura, and stripped tags."""
    corpus = load_pages()
    facts = sum(len(page.keep) for page in corpus)
    boilerplate = sum(len(page.gone) for page in corpus)
    ours = _score(corpus, lambda page: extract(page.html, url=page.url).markdown)
    plain = _score(corpus, lambda page: trafilatura.extract(page.html, url=page.url) or "")
    bare = _score(corpus, lambda page: _strip_tags(decode_html(page.html)))
    others = f"plain trafilatura {{}}, tags stripped {{}}, of {{}} on {len(corpus)} pages"
    return [
        BenchResult(
            what="facts lost from web pages",
            measured=facts - ours.facts,
            limit=0,
            unit="",
            detail=others.format(facts - plain.facts, facts - bare.facts, facts),
        ),
        BenchResult(
            what="pieces of boilerplate left",
            measured=ours.boilerplate,
            limit=0,
            unit="",
            detail=others.format(plain.boilerplate, bare.boilerplate, boilerplate),
        ),
        _compare("plain trafilatura", ours, plain, 1.0),
        _compare("tags stripped", ours, bare, 0.75),
    ]


def _score(corpus: list[SamplePage], read: Callable[[SamplePage], str]) -> ExtractionScore:
    texts = [(page, read(page)) for page in corpus]
    return ExtractionScore(
        facts=sum(len(page.kept_facts(text)) for page, text in texts),
        boilerplate=sum(len(page.remaining_boilerplate(text)) for page, text in texts),
        chars=sum(len(text) for _, text in texts),
    )


def _compare(name: str, ours: ExtractionScore, theirs: ExtractionScore, limit: float) -> BenchResult:
    return BenchResult(
        what=f"characters per fact kept, against {name}",
        measured=ours.chars_per_fact / theirs.chars_per_fact,
        limit=limit,
        unit="×",
        detail=f"{ours.chars} for {ours.facts} against {theirs.chars} for {theirs.facts}",
    )


class _Stripper(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._skip_depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skip_depth += tag in ("script", "style", "title")

    def handle_endtag(self, tag: str) -> None:
        self._skip_depth -= tag in ("script", "style", "title") and self._skip_depth > 0

    def handle_data(self, data: str) -> None:
        if not self._skip_depth:
            self.words += data.split()


def _strip_tags(html: str) -> str:
    stripper = _Stripper()
    stripper.feed(html)
    return " ".join(stripper.words)
