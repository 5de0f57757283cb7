"""What a page says about itself: title, date, language, and the facts in its structured data."""

import json
import re
from collections.abc import Iterator, Mapping

from lxml.html import HtmlElement

_TITLE_ENDS = r"\s+[|\-–—·»:]\s+|\s*[｜]\s*"
_DATE = r"\d{4}-\d{2}-\d{2}"
_DATE_NAMES = (
    "article:published_time",
    "datepublished",
    "publishdate",
    "pubdate",
    "date",
    "dc.date",
    "dc.date.issued",
    "dcterms.created",
    "citation_publication_date",
    "og:published_time",
)
_IGNORED_KEYS = frozenset(
    """
    @context @type @id @graph image logo url sameAs mainEntityOfPage publisher thumbnailUrl contentUrl embedUrl
    potentialAction itemListElement breadcrumb isPartOf inLanguage headline datePublished dateModified author
    articleBody description name keywords articleSection wordCount priceCurrency availability itemCondition
    bestRating worstRating
    """.split()  # noqa: SIM905 (quoted words would hide the list)
)
_IGNORED_TYPES = frozenset(
    ("BreadcrumbList", "WebSite", "Organization", "WebPage", "ImageObject", "Person", "SearchAction")
)
_MAX_FACTS, _MAX_CHARS, _MAX_DEPTH = 60, 1000, 5
_SHORT_PAGE, _SHORT_FACT = 400, 80
_DURATION = r"P[0-9YMWDTHS.]+"


class PageMetadata:
    """Read from the whole tree before anything is taken away from it."""

    def __init__(self, root: HtmlElement) -> None:
        self._root = root
        self._metas = {
            (meta.get("property") or meta.get("name") or meta.get("itemprop") or "").lower(): meta.get("content", "")
            for meta in reversed(list(root.iter("meta")))
        }
        self.json_ld = tuple(_load_json_ld(root))
        self.language = self._language()
        self.date = self._date()
        self.description = " ".join((self._metas.get("description") or self._metas.get("og:description") or "").split())
        self._title_tag = self._find_title_tag()

    def title(self, content: HtmlElement) -> str:
        """Return the page's title: as it is shared, as it heads the content, or as the window shows it."""
        shared = " ".join(self._metas.get("og:title", "").split())
        if shared:
            return shared
        for heading in content.iter("h1"):
            if words := _heading(heading):
                return words
        return _strip_site_name(self._title_tag)

    def _find_title_tag(self) -> str:
        for title in self._root.iter("title"):
            return " ".join(title.text_content().split())
        return ""

    def _language(self) -> str:
        for place in (self._root, *self._root.iter("html", "body")):
            if found := place.get("lang") or place.get("{http://www.w3.org/XML/1998/namespace}lang"):
                return str(found)[:20]
        return (self._metas.get("og:locale") or self._metas.get("content-language") or "").replace("_", "-")[:20]

    def _date(self) -> str:
        told = [_get_text(data, "datePublished") for data in self.json_ld]
        told += [self._metas.get(name, "") for name in _DATE_NAMES]
        told += [time.get("datetime", "") for time in self._root.iter("time")]
        return next((found.group() for text in told if (found := re.search(_DATE, text))), "")


def missing_facts(text: str, structured: tuple[Mapping[str, object], ...]) -> list[str]:
    """Return the facts of a page's structured data that its text does not have."""
    bare = _alphanumeric(text)
    # A page with a text of its own has said in it what is long, and in other words what are times.
    longest = _MAX_CHARS if len(text) < _SHORT_PAGE else _SHORT_FACT
    lines: list[str] = []
    for data in structured:
        for name, value in _leaves(data, "", 0):
            if len(lines) == _MAX_FACTS:
                return lines
            if len(value) > longest or (longest == _SHORT_FACT and re.fullmatch(_DURATION, value)):
                continue
            if (
                _alphanumeric(value)
                and _alphanumeric(value) not in bare
                and not value.startswith(("http://", "https://"))
            ):
                lines.append(f"- {name}: {value}")
    return list(dict.fromkeys(lines))


def _load_json_ld(root: HtmlElement) -> Iterator[Mapping[str, object]]:
    for script in root.iter("script"):
        if script.get("type", "").strip().lower() != "application/ld+json":
            continue
        try:
            data: object = json.loads(script.text or "")
        except (ValueError, RecursionError):
            continue
        yield from _objects(data, 0)


def _objects(data: object, depth: int) -> Iterator[Mapping[str, object]]:
    if isinstance(data, list) and depth < _MAX_DEPTH:
        for item in data:
            yield from _objects(item, depth + 1)
    elif isinstance(data, Mapping):
        if "@graph" in data:
            yield from _objects(data["@graph"], depth + 1)
        elif not _IGNORED_TYPES & set(_types(data)):
            yield data


def _types(data: Mapping[str, object]) -> list[str]:
    kind = data.get("@type")
    return [str(name) for name in kind] if isinstance(kind, list) else [str(kind)]


def _leaves(data: object, name: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(data, Mapping):
        for key, value in data.items():
            if key not in _IGNORED_KEYS or (depth and key in ("name", "description")):
                yield from _leaves(value, f"{name} {key}".strip(), depth + 1)
    elif isinstance(data, list):
        for value in data:
            yield from _leaves(value, name, depth + 1)
    elif isinstance(data, (str, int, float)) and not isinstance(data, bool):
        text = " ".join(re.sub(r"<[^>]*>", " ", str(data)).split())
        if text:
            yield name, text


def _get_text(data: Mapping[str, object], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _heading(element: HtmlElement) -> str:
    words = "".join(str(text) for text in element.xpath(".//text()[not(ancestor::rt) and not(ancestor::rp)]"))
    return " ".join(words.split()).removesuffix("¶").strip()


def _strip_site_name(title: str) -> str:
    """Return a window's title without the name of the site, which stands at one of its ends."""
    return max(re.split(_TITLE_ENDS, title), key=len, default="").strip()


def _alphanumeric(text: str) -> str:
    return "".join(mark for mark in text if mark.isalnum()).lower()
