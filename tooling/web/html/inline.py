"""The words inside a block as one line of Markdown: links, code, formulas, line breaks."""

import re
from collections.abc import Iterator
from typing import TypeAlias
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from lxml.html import HtmlElement

_TEX = "application/x-tex"
_PAIRS = {"mfrac": "({})/({})", "msup": "{}^{}", "msub": "{}_{}", "mroot": "root({}, {})"}
_MAX_DEPTH = 40


def render_formula(element: HtmlElement) -> str:
    """Return a formula between dollar signs."""
    text = _find_tex(element) or " ".join(_render_mathml(element, 0).split())
    if not text:
        return ""
    return f"$${text}$$" if element.get("display") == "block" else f"${text}$"


def _find_tex(element: HtmlElement) -> str:
    for note in element.iter("annotation"):
        if note.get("encoding") == _TEX and note.text:
            return " ".join(note.text.split())
    return " ".join(element.get("alttext", "").split())


def _render_mathml(element: HtmlElement, depth: int) -> str:
    if element.tag in ("annotation", "annotation-xml") or depth > _MAX_DEPTH:
        return ""
    parts = [_render_mathml(child, depth + 1) for child in element]
    form = _PAIRS.get(str(element.tag))
    if form and len(parts) == 2:
        return form.format(*(part.strip() for part in parts))
    if element.tag == "msqrt":
        return f"sqrt({' '.join(parts).strip()})"
    return (element.text or "") + " ".join(parts)


MAX_URL_CHARS = 2_000
MAX_LINK_CHARS = 2_000_000


class LinkBudget:
    """Says of each link whether its address is still written, or only its words."""

    def __init__(self) -> None:
        self._chars_left = MAX_LINK_CHARS

    def reserve(self, place: str) -> bool:
        """Say whether there is room for an address, and take it."""
        if len(place) > min(MAX_URL_CHARS, self._chars_left):
            return False
        self._chars_left -= len(place)
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
# Added by advertisers and newsletters; the page is the same without them.
_TRACKING = re.compile(r"(?:utm_|mc_|hsa_).*|gclid|fbclid|msclkid|igshid|srsltid", re.IGNORECASE)
_MIN_ALT_WORDS = 3


class LinkResolver:
    """The links of a page, made whole with its own address; a place is linked once, then only named."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._seen: set[str] = set()
        self._budget = LinkBudget()

    def resolve(self, href: str) -> str:
        """Return where a link leads, without what only counts visitors; nothing if it leads nowhere else."""
        href = "".join(href.split())
        if not href or href.lower().startswith(_SKIPPED_PREFIXES):
            return ""
        try:
            parts = urlsplit(urljoin(self._base, href))
            fields = parse_qsl(parts.query, keep_blank_values=True)
            if any(_TRACKING.fullmatch(name) for name, _ in fields):
                kept = [(name, value) for name, value in fields if not _TRACKING.fullmatch(name)]
                parts = parts._replace(query=urlencode(kept))
            place = urlunsplit(parts)
        except ValueError:
            return ""
        is_this_page = place.partition("#")[0] == self._base.partition("#")[0]
        return "" if is_this_page else place.replace("(", "%28").replace(")", "%29")

    def resolve_once(self, href: str) -> str:
        """Return where a link leads, the first time it does."""
        place = self.resolve(href)
        if not place or place in self._seen:
            return ""
        self._seen.add(place)
        return place if self._budget.reserve(place) else ""


def render_line(element: HtmlElement, links: LinkResolver) -> str:
    """Return everything inside an element on one line; line breaks of the page stay as such."""
    return collapse_spaces("".join(_render_parts(element, links)))


def collapse_spaces(text: str) -> str:
    """Return a text with its spaces collapsed, line by line."""
    return "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()


def render_inline(element: HtmlElement, links: LinkResolver) -> str:
    """Return one inline element with its marks; its tail is not part of it."""
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
    before, after = _MARKS.get(str(tag), ("", ""))
    return _wrap_words(inner, before, after) if before else inner


def _render_parts(element: HtmlElement, links: LinkResolver) -> Iterator[str]:
    yield flatten_whitespace(element.text)
    before = ""
    for child in element:
        words = add_space_between(before, render_inline(child, links))
        yield words
        yield flatten_whitespace(child.tail)
        before = "" if child.tail else words


def add_space_between(before: str, words: str) -> str:
    """Return words with a space in front if only the styles of the page keep them apart from those of a neighbour."""
    return f" {words}" if before[-1:].isalnum() and words[:1].isalnum() else words


def _render_children(element: HtmlElement, links: LinkResolver) -> str:
    return "".join(_render_parts(element, links))


def flatten_whitespace(text: str | None) -> str:
    """Return text of the page with its own line ends as spaces: only <br> breaks a line."""
    return re.sub(r"[\t\r\n\f ]+", " ", text) if text else ""


def _wrap_words(inner: str, before: str, after: str) -> str:
    """Put marks around words, never around the spaces beside them."""
    words = inner.strip()
    if not words or before in words:
        return inner
    lead = inner[: len(inner) - len(inner.lstrip())]
    tail = inner[len(inner.rstrip()) :]
    return f"{lead}{before}{words}{after}{tail}"


def _render_code(element: HtmlElement) -> str:
    text = " ".join(element.text_content().split())
    if not text:
        return ""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def _render_link(element: HtmlElement, links: LinkResolver) -> str:
    inner = _render_children(element, links)
    words = collapse_spaces(inner).replace("\n", " ")
    place = links.resolve_once(element.get("href", "")) if words else ""
    if not place:
        return inner
    if words == place or words.rstrip("/") == place.rstrip("/"):
        return place
    lead = " " if inner[:1].isspace() else ""
    tail = " " if inner[-1:].isspace() else ""
    return f"{lead}[{words}]({place}){tail}"


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
