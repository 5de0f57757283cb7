"""The words inside a block as one line of Markdown: links, code, formulas, line breaks."""

import re
from collections.abc import Iterator
from typing import TypeAlias
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from lxml.html import HtmlElement

_TEX = "application/x-tex"
_PAIRS = {"mfrac": "({})/({})", "msup": "{}^{}", "msub": "{}_{}", "mroot": "root({}, {})"}
_DEEPEST = 40


def formula(element: HtmlElement) -> str:
    """Return a formula between dollar signs."""
    text = _tex(element) or " ".join(_written(element, 0).split())
    if not text:
        return ""
    return f"$${text}$$" if element.get("display") == "block" else f"${text}$"


def _tex(element: HtmlElement) -> str:
    for note in element.iter("annotation"):
        if note.get("encoding") == _TEX and note.text:
            return " ".join(note.text.split())
    return " ".join(element.get("alttext", "").split())


def _written(element: HtmlElement, depth: int) -> str:
    if element.tag in ("annotation", "annotation-xml") or depth > _DEEPEST:
        return ""
    parts = [_written(child, depth + 1) for child in element]
    form = _PAIRS.get(str(element.tag))
    if form and len(parts) == 2:
        return form.format(*(part.strip() for part in parts))
    if element.tag == "msqrt":
        return f"sqrt({' '.join(parts).strip()})"
    return (element.text or "") + " ".join(parts)


LONGEST_PLACE = 2_000
MOST_CHARS = 2_000_000


class LinkRoom:
    """Says of each link whether its address is still written, or only its words."""

    def __init__(self) -> None:
        self._left = MOST_CHARS

    def takes(self, place: str) -> bool:
        """Say whether there is room for an address, and take it."""
        if len(place) > min(LONGEST_PLACE, self._left):
            return False
        self._left -= len(place)
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
_NOWHERE = ("#", "javascript:", "data:", "blob:", "about:", "mailto:", "tel:")
# Added by advertisers and newsletters; the page is the same without them.
_TRACKING = re.compile(r"(?:utm_|mc_|hsa_).*|gclid|fbclid|msclkid|igshid|srsltid", re.IGNORECASE)
_LEAST_ALT_WORDS = 3


class Links:
    """The links of a page, made whole with its own address; a place is linked once, then only named."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._seen: set[str] = set()
        self._room = LinkRoom()

    def whole(self, href: str) -> str:
        """Return where a link leads, without what only counts visitors; nothing if it leads nowhere else."""
        href = "".join(href.split())
        if not href or href.lower().startswith(_NOWHERE):
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

    def once(self, href: str) -> str:
        """Return where a link leads, the first time it does."""
        place = self.whole(href)
        if not place or place in self._seen:
            return ""
        self._seen.add(place)
        return place if self._room.takes(place) else ""


def line_of(element: HtmlElement, links: Links) -> str:
    """Return everything inside an element on one line; line breaks of the page stay as such."""
    return tidy("".join(_parts(element, links)))


def tidy(text: str) -> str:
    """Return a text with its spaces collapsed, line by line."""
    return "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()


def inline(element: HtmlElement, links: Links) -> str:
    """Return one inline element with its marks; its tail is not part of it."""
    tag = element.tag
    if tag == "br":
        return "\n"
    if tag == "a":
        return _link(element, links)
    if tag == "img":
        return _image(element)
    if tag == "math":
        return formula(element)
    if tag == "input":
        return "[x] " if "checked" in element.attrib else "[ ] "
    if tag in _CODE:
        return _code(element)
    if tag == "rt" and not any(child.tag == "rp" for child in _siblings(element)):
        return f"({_inside(element, links)})"
    inner = _inside(element, links)
    before, after = _MARKS.get(str(tag), ("", ""))
    return _marked(inner, before, after) if before else inner


def _parts(element: HtmlElement, links: Links) -> Iterator[str]:
    yield flat(element.text)
    before = ""
    for child in element:
        words = apart(before, inline(child, links))
        yield words
        yield flat(child.tail)
        before = "" if child.tail else words


def apart(before: str, words: str) -> str:
    """Return words with a space in front if only the styles of the page keep them apart from those of a neighbour."""
    return f" {words}" if before[-1:].isalnum() and words[:1].isalnum() else words


def _inside(element: HtmlElement, links: Links) -> str:
    return "".join(_parts(element, links))


def flat(text: str | None) -> str:
    """Return text of the page with its own line ends as spaces: only <br> breaks a line."""
    return re.sub(r"[\t\r\n\f ]+", " ", text) if text else ""


def _marked(inner: str, before: str, after: str) -> str:
    """Put marks around words, never around the spaces beside them."""
    words = inner.strip()
    if not words or before in words:
        return inner
    lead = inner[: len(inner) - len(inner.lstrip())]
    tail = inner[len(inner.rstrip()) :]
    return f"{lead}{before}{words}{after}{tail}"


def _code(element: HtmlElement) -> str:
    text = " ".join(element.text_content().split())
    if not text:
        return ""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def _link(element: HtmlElement, links: Links) -> str:
    inner = _inside(element, links)
    words = tidy(inner).replace("\n", " ")
    place = links.once(element.get("href", "")) if words else ""
    if not place:
        return inner
    if words == place or words.rstrip("/") == place.rstrip("/"):
        return place
    lead = " " if inner[:1].isspace() else ""
    tail = " " if inner[-1:].isspace() else ""
    return f"{lead}[{words}]({place}){tail}"


def _image(element: HtmlElement) -> str:
    alt = " ".join(element.get("alt", "").split())
    if not alt:
        return ""
    if re.search(r"\\[a-zA-Z]+|\b(?:tex|math|latex)\b", f"{alt} {element.get('class', '')}"):
        return f"${alt}$"
    is_linked = any(parent.tag == "a" for parent in element.iterancestors())
    if is_linked:
        return alt
    return f"[image: {alt}]" if len(alt.split()) >= _LEAST_ALT_WORDS else ""


def _siblings(element: HtmlElement) -> list[HtmlElement]:
    parent = element.getparent()
    return [] if parent is None else list(parent)
