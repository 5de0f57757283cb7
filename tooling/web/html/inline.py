"""Render inline HTML as Markdown: links, code, formulas, line breaks."""

import re
from collections.abc import Iterator
from typing import TypeAlias
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from lxml.html import HtmlElement

from tooling.contract.lazy_pattern import lazy_pattern

_TEX = "application/x-tex"
_PAIRS = {"mfrac": "({})/({})", "msup": "{}^{}", "msub": "{}_{}", "mroot": "root({}, {})"}
_MAX_DEPTH = 40


def render_formula(element: HtmlElement) -> str:
    """Render MathML as TeX between dollar signs."""
    text = _find_tex(element) or " ".join(_render_mathml(element, 0).split())
    if not text:
        return ""
    return f"$${text}$$" if element.get("display") == "block" else f"${text}$"


def _find_tex(element: HtmlElement) -> str:
    for annotation in element.iter("annotation"):
        if annotation.get("encoding") == _TEX and annotation.text:
            return " ".join(annotation.text.split())
    return " ".join(element.get("alttext", "").split())


def _render_mathml(element: HtmlElement, depth: int) -> str:
    if element.tag in ("annotation", "annotation-xml") or depth > _MAX_DEPTH:
        return ""
    parts = [_render_mathml(child, depth + 1) for child in element]
    template = _PAIRS.get(str(element.tag))
    if template and len(parts) == 2:
        return template.format(*(part.strip() for part in parts))
    if element.tag == "msqrt":
        return f"sqrt({' '.join(parts).strip()})"
    return (element.text or "") + " ".join(parts)


MAX_URL_CHARS = 2_000
MAX_LINK_CHARS = 2_000_000


class LinkBudget:
    """Bounds the total length of the URLs in a page; links beyond it keep only their text."""

    def __init__(self) -> None:
        self._chars_left = MAX_LINK_CHARS

    def reserve(self, url: str) -> bool:
        """Reserve room for a URL; False if there is none."""
        if len(url) > min(MAX_URL_CHARS, self._chars_left):
            return False
        self._chars_left -= len(url)
        return True


Marks: TypeAlias = tuple[str, str]

_MARKS: dict[str, Marks] = {
    "strong": ("**", "**"),
    "b": ("**", "**"),
    "del": ("~~", "~~"),
    "s": ("~~", "~~"),
    "strike": ("~~", "~~"),
    "q": ("“", "”"),
    "sup": ("^", ""),
    "sub": ("_", ""),
}
_CODE = ("code", "kbd", "samp", "tt")
_SKIPPED_PREFIXES = ("#", "javascript:", "data:", "blob:", "about:", "mailto:", "tel:")
# Tracking parameters of advertisers and newsletters; the page is the same without them.
_TRACKING = lazy_pattern(r"(?:utm_|mc_|hsa_).*|gclid|fbclid|msclkid|igshid|srsltid", re.IGNORECASE)
_MIN_ALT_WORDS = 3


class LinkResolver:
    """Makes the links of a page absolute; each URL is linked only once."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._seen: set[str] = set()
        self._budget = LinkBudget()

    def resolve(self, href: str) -> str:
        """Return the absolute URL without tracking parameters; empty if it stays on this page."""
        href = "".join(href.split())
        if not href or href.lower().startswith(_SKIPPED_PREFIXES):
            return ""
        try:
            parts = urlsplit(urljoin(self._base, href))
            fields = parse_qsl(parts.query, keep_blank_values=True)
            if any(_TRACKING.fullmatch(name) for name, _ in fields):
                clean = [(name, value) for name, value in fields if not _TRACKING.fullmatch(name)]
                parts = parts._replace(query=urlencode(clean))
            url = urlunsplit(parts)
        except ValueError:
            return ""
        is_this_page = url.partition("#")[0] == self._base.partition("#")[0]
        return "" if is_this_page else url.replace("(", "%28").replace(")", "%29")

    def resolve_once(self, href: str) -> str:
        """Return the absolute URL the first time it occurs, then an empty string."""
        url = self.resolve(href)
        if not url or url in self._seen:
            return ""
        self._seen.add(url)
        return url if self._budget.reserve(url) else ""


def render_line(element: HtmlElement, links: LinkResolver) -> str:
    """Render the content of an element on one line; only <br> breaks it."""
    return collapse_spaces("".join(_render_parts(element, links)))


def collapse_spaces(text: str) -> str:
    """Collapse runs of spaces line by line."""
    return "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()


def render_inline(element: HtmlElement, links: LinkResolver) -> str:
    """Render one inline element without its tail."""
    tag = element.tag
    if tag == "br":
        return "\n"
    if tag == "a":
        return _render_link(element, links)
    if tag == "img":
        return _render_image(element)
    if tag == "math":
        return render_formula(element)
    if tag == "input":
        return "[x] " if "checked" in element.attrib else "[ ] "
    if tag in _CODE:
        return _render_code(element)
    if tag == "rt" and not any(child.tag == "rp" for child in _siblings(element)):
        return f"({_render_children(element, links)})"
    inner = _render_children(element, links)
    opening, closing = _MARKS.get(str(tag), ("", ""))
    return _wrap_words(inner, opening, closing) if opening else inner


def _render_parts(element: HtmlElement, links: LinkResolver) -> Iterator[str]:
    yield flatten_whitespace(element.text)
    previous = ""
    for child in element:
        text = add_space_between(previous, render_inline(child, links))
        yield text
        yield flatten_whitespace(child.tail)
        previous = "" if child.tail else text


def add_space_between(previous: str, text: str) -> str:
    """Prepend a space if only CSS separates the text from the element before it."""
    return f" {text}" if previous[-1:].isalnum() and text[:1].isalnum() else text


def _render_children(element: HtmlElement, links: LinkResolver) -> str:
    return "".join(_render_parts(element, links))


def flatten_whitespace(text: str | None) -> str:
    """Replace source line breaks with spaces: only <br> breaks a line."""
    return re.sub(r"[\t\r\n\f ]+", " ", text) if text else ""


def _wrap_words(inner: str, opening: str, closing: str) -> str:
    """Put marks around a text but not around the spaces at its ends."""
    words = inner.strip()
    if not words or opening in words:
        return inner
    lead = inner[: len(inner) - len(inner.lstrip())]
    tail = inner[len(inner.rstrip()) :]
    return f"{lead}{opening}{words}{closing}{tail}"


def _render_code(element: HtmlElement) -> str:
    text = " ".join(element.text_content().split())
    if not text:
        return ""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def _render_link(element: HtmlElement, links: LinkResolver) -> str:
    inner = _render_children(element, links)
    words = collapse_spaces(inner).replace("\n", " ")
    url = links.resolve_once(element.get("href", "")) if words else ""
    if not url:
        return inner
    if words == url or words.rstrip("/") == url.rstrip("/"):
        return url
    lead = " " if inner[:1].isspace() else ""
    tail = " " if inner[-1:].isspace() else ""
    return f"{lead}[{words}]({url}){tail}"


def _render_image(element: HtmlElement) -> str:
    alt = " ".join(element.get("alt", "").split())
    if not alt:
        return ""
    if re.search(r"\\[a-zA-Z]+|\b(?:tex|math|latex)\b", f"{alt} {element.get('class', '')}"):
        return f"${alt}$"
    is_linked = any(parent.tag == "a" for parent in element.iterancestors())
    if is_linked:
        return alt
    return f"[image: {alt}]" if len(alt.split()) >= _MIN_ALT_WORDS else ""


def _siblings(element: HtmlElement) -> list[HtmlElement]:
    parent = element.getparent()
    return [] if parent is None else list(parent)
