"""Find the main content of a page: by its own markup, or with the help of trafilatura."""

import copy
from collections.abc import Iterable

import trafilatura
from lxml.html import HtmlElement


def text_size(element: HtmlElement) -> int:
    """Return the number of non-space characters in an element."""
    return len("".join(element.text_content().split()))


def link_density(element: HtmlElement) -> float:
    """Return the share of an element's text that is inside links."""
    size = text_size(element)
    return sum(map(text_size, element.iter("a"))) / size if size else 0.0


_MIN_ARTICLE_SHARE = 0.6
_MIN_MAIN_SHARE = 0.25
_MIN_COVERAGE = 0.85
_MIN_CHARS = 120
# trafilatura takes some hundred microseconds per element; larger pages mark their content themselves, or are lists.
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
    """The words that trafilatura considers the content of a page; its formatting is not used."""

    def __init__(self, body: HtmlElement) -> None:
        self._words = _alphanumeric(_run_trafilatura(body))

    @property
    def is_empty(self) -> bool:
        """Return whether it found hardly anything."""
        return len(self._words) < _MIN_CHARS

    def contains(self, element: HtmlElement) -> bool:
        """Return whether an element's text is part of the content."""
        words = _alphanumeric(element.text_content())
        return bool(words) and words[:80] in self._words


def find_main_content(body: HtmlElement, reference: TrafilaturaText) -> HtmlElement:
    """Return the element that contains the content."""
    page_size = text_size(body)
    main = max((element for element in body.iter("*") if _is_main(element)), key=text_size, default=None)
    if main is not None and text_size(main) >= max(page_size * _MIN_MAIN_SHARE, 1):
        return _narrow_to_article(main)
    articles = list(body.iter("article"))
    if articles and sum(map(text_size, articles)) >= page_size * _MIN_ARTICLE_SHARE:
        return _common_ancestor(articles)
    leaves = [leaf for leaf in body.iter(*_LEAVES) if reference.contains(leaf)]
    return _widen(_smallest_container(body, leaves), body) if not reference.is_empty and leaves else body


def trim_edges(root: HtmlElement, reference: TrafilaturaText) -> None:
    """Remove short elements at both ends of the content that trafilatura does not count as content."""
    if reference.is_empty:
        return
    for parent in _edge_parents(root):
        for children in (list(parent), list(reversed(parent))):
            for child in children:
                if not isinstance(child.tag, str) or not _is_edge(child, reference):
                    break
                if child.getparent() is parent:
                    child.drop_tree()


def _edge_parents(root: HtmlElement) -> list[HtmlElement]:
    """Return the content element and the chain of only children below it."""
    parents = [root]
    while len(parents[-1]) == 1 and len(parents) < 20:
        parents.append(parents[-1][0])
    return parents


def _is_edge(child: HtmlElement, reference: TrafilaturaText) -> bool:
    if child.tag in _NOT_AT_EDGES or next(child.iter(*_NOT_AT_EDGES), None) is not None:
        return False
    return text_size(child) < _EDGE_CHARS and not reference.contains(child)


def _narrow_to_article(main: HtmlElement) -> HtmlElement:
    """Return the only article inside if it has most of the text, else the main element."""
    articles = [article for article in main.iter("article") if article is not main]
    outer = [article for article in articles if next(article.iterancestors("article"), None) is None]
    if len(outer) == 1 and text_size(outer[0]) >= text_size(main) * _MIN_ARTICLE_SHARE:
        return outer[0]
    return main


def _smallest_container(body: HtmlElement, leaves: Iterable[HtmlElement]) -> HtmlElement:
    """Return the smallest element that contains nearly all of the leaves."""
    weights: dict[HtmlElement, int] = {}
    total = 0
    for leaf in leaves:
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


def _widen(element: HtmlElement, body: HtmlElement) -> HtmlElement:
    """Move up to an ancestor with most of the page and, if it is not much larger, with the heading."""
    page_size = text_size(body)
    while element is not body and (parent := element.getparent()) is not None:
        size = text_size(element)
        lacks_heading = next(element.iter("h1"), None) is None and next(parent.iter("h1"), None) is not None
        if size >= page_size * _MIN_ARTICLE_SHARE and not (lacks_heading and text_size(parent) <= size * 1.5):
            break
        element = parent
    return element


def _common_ancestor(elements: list[HtmlElement]) -> HtmlElement:
    if len(elements) == 1:
        return elements[0]
    chains = [[element, *element.iterancestors()] for element in elements]
    return next(ancestor for ancestor in chains[0][1:] if all(ancestor in chain for chain in chains))


def _run_trafilatura(body: HtmlElement) -> str:
    if sum(1 for _ in body.iter()) > _MAX_ELEMENTS:
        return ""
    # trafilatura modifies the tree, so it gets a copy.
    page = copy.deepcopy(body)
    for cell in page.iter("td", "th"):
        # It expands spans, even of thousands of columns.
        cell.attrib.pop("colspan", None)
        cell.attrib.pop("rowspan", None)
    found = trafilatura.bare_extraction(page, include_tables=True, include_comments=True, favor_recall=True)
    return "" if found is None or isinstance(found, dict) else f"{found.text or ''} {found.comments or ''}"


def _is_main(element: HtmlElement) -> bool:
    return element.tag == "main" or element.get("role") == "main"


def _alphanumeric(text: str) -> str:
    return "".join(filter(str.isalnum, text))
