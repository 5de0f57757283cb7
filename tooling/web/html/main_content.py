"""Which part of a page is its content: what the page itself says, or what trafilatura finds."""

import copy
from collections.abc import Iterable

import trafilatura
from lxml.html import HtmlElement


def text_size(element: HtmlElement) -> int:
    """Return the number of characters in an element that are not blank."""
    return len("".join(element.text_content().split()))


def link_density(element: HtmlElement) -> float:
    """Return how much of an element's text is inside links."""
    size = text_size(element)
    return sum(map(text_size, element.iter("a"))) / size if size else 0.0


_MIN_ARTICLE_SHARE = 0.6
_MIN_MAIN_SHARE = 0.25
_MIN_COVERAGE = 0.85
_MIN_CHARS = 120
# It takes some hundred microseconds for each; a page of that size has said itself where its content is, or is a list.
_MAX_ELEMENTS = 6_000
_LEAVES = ("p", "li", "td", "th", "pre", "dd", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "figcaption")
_EDGE_CHARS = 160
_NOT_AT_EDGES = (
    "table",
    "ul",
    "ol",
    "dl",
    "pre",
    "h1",
    "h2",
    "h3",
    "details",
    "blockquote",
    "math",
    "img",
    "figure",
    "frame",
)


class TrafilaturaText:
    """What trafilatura takes for the content of a page: not how it writes it, only which words it keeps."""

    def __init__(self, body: HtmlElement) -> None:
        self._words = _alphanumeric(_run_trafilatura(body))

    @property
    def is_empty(self) -> bool:
        """Say whether it found nothing to speak of."""
        return len(self._words) < _MIN_CHARS

    def contains(self, element: HtmlElement) -> bool:
        """Say whether the words of an element are among the content."""
        words = _alphanumeric(element.text_content())
        return bool(words) and words[:80] in self._words


def find_main_content(body: HtmlElement, vote: TrafilaturaText) -> HtmlElement:
    """Return the element that holds the content."""
    whole = text_size(body)
    marked = max((main for main in body.iter("*") if _is_main(main)), key=text_size, default=None)
    if marked is not None and text_size(marked) >= max(whole * _MIN_MAIN_SHARE, 1):
        return _narrow_to_article(marked)
    articles = list(body.iter("article"))
    if articles and sum(map(text_size, articles)) >= whole * _MIN_ARTICLE_SHARE:
        return _common_ancestor(articles)
    voted = [leaf for leaf in body.iter(*_LEAVES) if vote.contains(leaf)]
    return _widen(_smallest_container(body, voted), body) if not vote.is_empty and voted else body


def trim_edges(root: HtmlElement, vote: TrafilaturaText) -> None:
    """Take away short words before and after the content that trafilatura does not count as such."""
    if vote.is_empty:
        return
    for parent in _edge_parents(root):
        for step in (list(parent), list(reversed(parent))):
            for child in step:
                if not isinstance(child.tag, str) or not _is_edge(child, vote):
                    break
                if child.getparent() is parent:
                    child.drop_tree()


def _edge_parents(root: HtmlElement) -> list[HtmlElement]:
    """Return the content's element and those that alone hold it."""
    parents = [root]
    while len(parents[-1]) == 1 and len(parents) < 20:
        parents.append(parents[-1][0])
    return parents


def _is_edge(child: HtmlElement, vote: TrafilaturaText) -> bool:
    if child.tag in _NOT_AT_EDGES or next(child.iter(*_NOT_AT_EDGES), None) is not None:
        return False
    return text_size(child) < _EDGE_CHARS and not vote.contains(child)


def _narrow_to_article(main: HtmlElement) -> HtmlElement:
    """Return the one article inside that is nearly all of it, or the whole."""
    articles = [article for article in main.iter("article") if article is not main]
    outer = [article for article in articles if next(article.iterancestors("article"), None) is None]
    if len(outer) == 1 and text_size(outer[0]) >= text_size(main) * _MIN_ARTICLE_SHARE:
        return outer[0]
    return main


def _smallest_container(body: HtmlElement, voted: Iterable[HtmlElement]) -> HtmlElement:
    """Return the lowest element that holds nearly all of what was voted for."""
    weights: dict[HtmlElement, int] = {}
    total = 0
    for leaf in voted:
        size = len(leaf.text_content())
        total += size
        for element in (leaf, *leaf.iterancestors()):
            weights[element] = weights.get(element, 0) + size
    current = body
    while True:
        heavy = [child for child in current if weights.get(child, 0) >= total * _MIN_COVERAGE]
        if not heavy or heavy[0].tag in _LEAVES or heavy[0].tag in ("ul", "ol", "dl", "table", "tbody", "tr"):
            return current
        current = heavy[0]


def _widen(found: HtmlElement, body: HtmlElement) -> HtmlElement:
    """Go up while more than half of the page is outside, or while the heading is."""
    whole = text_size(body)
    while found is not body and (parent := found.getparent()) is not None:
        size = text_size(found)
        lacks_heading = next(found.iter("h1"), None) is None and next(parent.iter("h1"), None) is not None
        if size >= whole * _MIN_ARTICLE_SHARE and not (lacks_heading and text_size(parent) <= size * 1.5):
            break
        found = parent
    return found


def _common_ancestor(elements: list[HtmlElement]) -> HtmlElement:
    if len(elements) == 1:
        return elements[0]
    lines = [[element, *element.iterancestors()] for element in elements]
    return next(place for place in lines[0][1:] if all(place in line for line in lines))


def _run_trafilatura(body: HtmlElement) -> str:
    if sum(1 for _ in body.iter()) > _MAX_ELEMENTS:
        return ""
    # It takes its tree apart, so it gets one of its own.
    page = copy.deepcopy(body)
    for cell in page.iter("td", "th"):
        # It fills in what cells span, thousands of columns included.
        cell.attrib.pop("colspan", None)
        cell.attrib.pop("rowspan", None)
    found = trafilatura.bare_extraction(page, include_tables=True, include_comments=True, favor_recall=True)
    return "" if found is None or isinstance(found, dict) else f"{found.text or ''} {found.comments or ''}"


def _is_main(element: HtmlElement) -> bool:
    return element.tag == "main" or element.get("role") == "main"


def _alphanumeric(text: str) -> str:
    return "".join(mark for mark in text if mark.isalnum())
