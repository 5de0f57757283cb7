"""Which part of a page is its content: what the page itself says, or what trafilatura finds."""

import copy
from collections.abc import Iterable

import trafilatura
from lxml.html import HtmlElement


def size_of(element: HtmlElement) -> int:
    """Return the number of characters in an element that are not blank."""
    return len("".join(element.text_content().split()))


def link_share(element: HtmlElement) -> float:
    """Return how much of an element's text is inside links."""
    size = size_of(element)
    return sum(map(size_of, element.iter("a"))) / size if size else 0.0


_WHOLE_ARTICLE = 0.6
_WHOLE_MAIN = 0.25
_ENOUGH = 0.85
_LEAST_CHARS = 120
# It takes some hundred microseconds for each; a page of that size has said itself where its content is, or is a list.
_MOST_ELEMENTS = 6_000
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


class Vote:
    """What trafilatura takes for the content of a page: not how it writes it, only which words it keeps."""

    def __init__(self, body: HtmlElement) -> None:
        self._words = _bare(_by_trafilatura(body))

    @property
    def is_empty(self) -> bool:
        """Say whether it found nothing to speak of."""
        return len(self._words) < _LEAST_CHARS

    def keeps(self, element: HtmlElement) -> bool:
        """Say whether the words of an element are among the content."""
        words = _bare(element.text_content())
        return bool(words) and words[:80] in self._words


def content_of(body: HtmlElement, vote: Vote) -> HtmlElement:
    """Return the element that holds the content."""
    whole = size_of(body)
    marked = max((main for main in body.iter("*") if _is_main(main)), key=size_of, default=None)
    if marked is not None and size_of(marked) >= max(whole * _WHOLE_MAIN, 1):
        return _narrowed(marked)
    articles = list(body.iter("article"))
    if articles and sum(map(size_of, articles)) >= whole * _WHOLE_ARTICLE:
        return _common(articles)
    voted = [leaf for leaf in body.iter(*_LEAVES) if vote.keeps(leaf)]
    return _widened(_holding_most(body, voted), body) if not vote.is_empty and voted else body


def trim_edges(root: HtmlElement, vote: Vote) -> None:
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


def _is_edge(child: HtmlElement, vote: Vote) -> bool:
    if child.tag in _NOT_AT_EDGES or next(child.iter(*_NOT_AT_EDGES), None) is not None:
        return False
    return size_of(child) < _EDGE_CHARS and not vote.keeps(child)


def _narrowed(main: HtmlElement) -> HtmlElement:
    """Return the one article inside that is nearly all of it, or the whole."""
    articles = [article for article in main.iter("article") if article is not main]
    outer = [article for article in articles if next(article.iterancestors("article"), None) is None]
    if len(outer) == 1 and size_of(outer[0]) >= size_of(main) * _WHOLE_ARTICLE:
        return outer[0]
    return main


def _holding_most(body: HtmlElement, voted: Iterable[HtmlElement]) -> HtmlElement:
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
        heavy = [child for child in current if weights.get(child, 0) >= total * _ENOUGH]
        if not heavy or heavy[0].tag in _LEAVES or heavy[0].tag in ("ul", "ol", "dl", "table", "tbody", "tr"):
            return current
        current = heavy[0]


def _widened(found: HtmlElement, body: HtmlElement) -> HtmlElement:
    """Go up while more than half of the page is outside, or while the heading is."""
    whole = size_of(body)
    while found is not body and (parent := found.getparent()) is not None:
        size = size_of(found)
        lacks_heading = next(found.iter("h1"), None) is None and next(parent.iter("h1"), None) is not None
        if size >= whole * _WHOLE_ARTICLE and not (lacks_heading and size_of(parent) <= size * 1.5):
            break
        found = parent
    return found


def _common(elements: list[HtmlElement]) -> HtmlElement:
    if len(elements) == 1:
        return elements[0]
    lines = [[element, *element.iterancestors()] for element in elements]
    return next(place for place in lines[0][1:] if all(place in line for line in lines))


def _by_trafilatura(body: HtmlElement) -> str:
    if sum(1 for _ in body.iter()) > _MOST_ELEMENTS:
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


def _bare(text: str) -> str:
    return "".join(mark for mark in text if mark.isalnum())
