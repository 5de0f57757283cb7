"""Pages that would be too much for a parser: tags without end, and scripts and pictures that are most of a page."""

import re
from collections.abc import Iterator

_LONG = 10_000
# A parser compares each attribute of a tag with all others; some thousand take seconds, and more take minutes.
_MOST_PARTS = 1_500
_BULKY = ("script", "svg")
_PICTURE = r"(?<==[\"'])data:[^\"'<>]{500,}"


def has_endless_tag(html: str) -> bool:
    """Say whether a page has a tag with thousands of attributes; one pass, whatever the page holds."""
    start, quote = -1, ""
    for found in re.finditer("[<>\"']", html):
        mark = found.group()
        if quote:
            quote = "" if mark == quote else quote
        elif start < 0:
            if mark == "<" and html[found.end() : found.end() + 1].isalpha():
                start = found.start()
        elif mark in "\"'":
            quote = mark
        elif mark == ">":
            if _is_endless(html, start, found.end()):
                return True
            start = -1
    return start >= 0 and _is_endless(html, start, len(html))


def _is_endless(html: str, start: int, end: int) -> bool:
    if end - start < _LONG:
        return False
    tag = html[start:end]
    return len(tag.split(maxsplit=_MOST_PARTS)) > _MOST_PARTS or tag.count("=") > _MOST_PARTS or tag.count("/") > _LONG


def without_bulk(html: str) -> str:
    """Return a page without scripts, drawings and pictures as text; each search goes on where the last one ended."""
    html = re.sub(_PICTURE, "", html)
    for name in _BULKY:
        html = "".join(_outside(html, name))
    return html


def _outside(html: str, name: str) -> Iterator[str]:
    opening, closing = (re.compile(rf"<{slash}{name}\b", re.IGNORECASE) for slash in ("", "/"))
    at = 0
    while (begun := opening.search(html, at)) and (ended := closing.search(html, begun.end())):
        # Structured data is a script by name only.
        is_kept = "ld+json" in html[begun.start() : begun.start() + 200]
        yield html[at : ended.start() if is_kept else begun.start()]
        at = ended.start()
    yield html[at:]
