"""How much text is in an element, and how much of it is links."""

from lxml.html import HtmlElement


def size_of(element: HtmlElement) -> int:
    """Return the number of characters in an element that are not blank."""
    return len("".join(element.text_content().split()))


def link_share(element: HtmlElement) -> float:
    """Return how much of an element's text is inside links."""
    size = size_of(element)
    return sum(map(size_of, element.iter("a"))) / size if size else 0.0
