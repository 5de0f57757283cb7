"""The metadata of a page: title, date, language, description and structured data."""

import json
import re
from collections.abc import Iterator, Mapping

from lxml.html import HtmlElement

_TITLE_SEPARATOR = r"\s+[|\-–—·»:]\s+|\s*[｜]\s*"
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
    """The metadata of a page, read from the tree before pruning."""

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
        """Return the title from og:title, the first h1 of the content, or the title element."""
        og_title = " ".join(self._metas.get("og:title", "").split())
        if og_title:
            return og_title
        for heading in content.iter("h1"):
            if text := _heading_text(heading):
                return text
        return _strip_site_name(self._title_tag)

    def _find_title_tag(self) -> str:
        for title in self._root.iter("title"):
            return " ".join(title.text_content().split())
        return ""

    def _language(self) -> str:
        for element in (self._root, *self._root.iter("html", "body")):
            if language := element.get("lang") or element.get("{http://www.w3.org/XML/1998/namespace}lang"):
                return str(language)[:20]
        return (self._metas.get("og:locale") or self._metas.get("content-language") or "").replace("_", "-")[:20]

    def _date(self) -> str:
        candidates = [_get_text(data, "datePublished") for data in self.json_ld]
        candidates += [self._metas.get(name, "") for name in _DATE_NAMES]
        candidates += [time.get("datetime", "") for time in self._root.iter("time")]
        return next((found.group() for text in candidates if (found := re.search(_DATE, text))), "")


def missing_facts(text: str, structured: tuple[Mapping[str, object], ...]) -> list[str]:
    """Return the facts in a page's structured data that its text lacks."""
    known = _alphanumeric(text)
    # A page with enough text repeats long facts, and writes durations in other words.
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
                and _alphanumeric(value) not in known
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


def _heading_text(element: HtmlElement) -> str:
    text = "".join(str(part) for part in element.xpath(".//text()[not(ancestor::rt) and not(ancestor::rp)]"))
    return " ".join(text.split()).removesuffix("¶").strip()


def _strip_site_name(title: str) -> str:
    """Return the longest part of a title, without the name of the site at either end."""
    return max(re.split(_TITLE_SEPARATOR, title), key=len, default="").strip()


def _alphanumeric(text: str) -> str:
    return "".join(filter(str.isalnum, text)).lower()
