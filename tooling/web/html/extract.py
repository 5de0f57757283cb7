"""HTML as Markdown: what was written for a reader, without the frame around it and without what a browser hides."""

import codecs
import re
from collections.abc import Iterator
from typing import Literal, TypeAlias
from urllib.parse import urljoin

import lxml.html
from lxml import etree
from lxml.html import HtmlElement

from tooling.contract.fast_dataclass import dataclass
from tooling.web.html.boilerplate import Pruner
from tooling.web.html.hidden_unicode import strip_invisible
from tooling.web.html.main_content import TrafilaturaText, find_main_content, trim_edges
from tooling.web.html.markdown_writer import MarkdownWriter
from tooling.web.html.metadata import PageMetadata, missing_facts
from tooling.web.html.plain_text import HEAD_TAGS, html_to_text

_LONG = 10_000
# A parser compares each attribute of a tag with all others; some thousand take seconds, and more take minutes.
_MAX_TAG_PARTS = 1_500
_BULKY = ("script", "svg")
_DATA_URI = r"(?<==[\"'])data:[^\"'<>]{500,}"


def has_oversized_tag(html: str) -> bool:
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
            if _is_oversized(html, start, found.end()):
                return True
            start = -1
    return start >= 0 and _is_oversized(html, start, len(html))


def _is_oversized(html: str, start: int, end: int) -> bool:
    if end - start < _LONG:
        return False
    tag = html[start:end]
    return (
        len(tag.split(maxsplit=_MAX_TAG_PARTS)) > _MAX_TAG_PARTS
        or tag.count("=") > _MAX_TAG_PARTS
        or tag.count("/") > _LONG
    )


def strip_bulk(html: str) -> str:
    """Return a page without scripts, drawings and pictures as text; each search goes on where the last one ended."""
    html = re.sub(_DATA_URI, "", html)
    for name in _BULKY:
        html = "".join(_outside_elements(html, name))
    return html


def _outside_elements(html: str, name: str) -> Iterator[str]:
    opening, closing = (re.compile(rf"<{slash}{name}\b", re.IGNORECASE) for slash in ("", "/"))
    at = 0
    while (begun := opening.search(html, at)) and (ended := closing.search(html, begun.end())):
        # Structured data is a script by name only.
        is_kept = "ld+json" in html[begun.start() : begun.start() + 200]
        yield html[at : ended.start() if is_kept else begun.start()]
        at = ended.start()
    yield html[at:]


Method: TypeAlias = Literal["trafilatura", "html"]

# Beyond these a tree takes more time and memory than it is worth; the text is then read in one pass.
MAX_CHARS = 1_000_000
MAX_ELEMENTS = 40_000
MAX_DEPTH = 200
_MIN_CONTENT_CHARS = 40
_META_CHARSET = rb"""<meta[^>]{0,200}charset\s*=\s*["']?([\w.:-]{1,40})"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedPage:
    """A page as a model reads it; `hidden_count` is how many hidden pieces were dropped.

    `method` says how the text was found: with trafilatura's help, or as plain text of the whole page.
    """

    markdown: str
    title: str = ""
    date: str = ""
    language: str = ""
    method: Method = "trafilatura"
    hidden_count: int = 0


def extract(html: str | bytes, *, url: str = "") -> ExtractedPage:
    """Return the content of a page; a pure function that takes its time, meant for a worker. It never raises."""
    text = html if isinstance(html, str) else decode_html(html)
    visible, invisible_count = strip_invisible(text)
    if has_oversized_tag(visible):
        return ExtractedPage(markdown=_strip_tags(visible), method="html", hidden_count=invisible_count)
    root = _parse_tree(visible)
    if root is None:
        plain = html_to_text(visible, url=url)
        return ExtractedPage(
            markdown=plain.text,
            title=plain.title,
            language=plain.language,
            method="html",
            hidden_count=plain.hidden_count + invisible_count,
        )
    return _extract_tree(root, url, invisible_count)


def decode_html(data: bytes) -> str:
    """Return the text of a page: by its byte order mark, by what it says of itself, as UTF-8, as Windows writes."""
    for mark, name in ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if data.startswith(mark):
            return data.decode(name, "replace").lstrip("\ufeff")
    said = re.search(_META_CHARSET, data[:4096], re.IGNORECASE)
    names = [said[1].decode("ascii", "replace")] if said else []
    for name in (*names, "utf-8"):
        try:
            return data.decode(name)
        except (LookupError, UnicodeDecodeError):
            continue
    return data.decode("windows-1252", "replace")


def _strip_tags(text: str) -> str:
    lines = (" ".join(line.split()) for line in re.sub(r"<[^<>]*>", " ", text).split("\n"))
    return "\n".join(line for line in lines if line)


def _parse_tree(text: str) -> HtmlElement | None:
    if len(text) > MAX_CHARS:
        text = strip_bulk(text)
    if not text.strip() or len(text) > MAX_CHARS:
        return None
    parser = lxml.html.HTMLParser(encoding="utf-8", huge_tree=True)
    try:
        root = lxml.html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None
    if not _is_within_limits(root):
        return None
    _parse_noframes(root)
    _close_head(root)
    return root


def _parse_noframes(root: HtmlElement) -> None:
    """Put elements in place of what the parser takes for text, as a browser without frames would."""
    for element in list(root.iter("noframes")):
        if "<" in (element.text or "") and not len(element):
            inner = lxml.html.fragment_fromstring(element.text or "", create_parent="div")
            element.text = None
            element.append(inner)


def _close_head(root: HtmlElement) -> None:
    """Move what cannot stand in a head into the body: the parser ends a head at elements of old alone."""
    head = root.find("head")
    first = next((at for at, child in enumerate(head) if _is_content(child)), None) if head is not None else None
    if head is None or first is None:
        return
    body = root.find("body")
    if body is None:
        body = etree.SubElement(root, "body")
    for at, child in enumerate(list(head)[first:]):
        body.insert(at, child)


def _is_content(element: HtmlElement) -> bool:
    return isinstance(element.tag, str) and element.tag not in HEAD_TAGS


def _is_within_limits(root: HtmlElement) -> bool:
    """Say whether a tree is as deep and as large as somebody could have written it."""
    count = depth = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        count += event == "start"
        if depth > MAX_DEPTH or count > MAX_ELEMENTS:
            return False
    return True


def _extract_tree(root: HtmlElement, url: str, invisible_count: int) -> ExtractedPage:
    facts = PageMetadata(root)
    base = _base_url(root, url)
    pruner = Pruner(root)
    pruner.prune()
    body = root.find("body")
    body = root if body is None else body
    vote = TrafilaturaText(body)
    # What frames show is elsewhere: their addresses are content.
    content = body if next(root.iter("frameset"), None) is not None else find_main_content(body, vote)
    title = facts.title(content)
    pruner.prune_link_lists(content)
    trim_edges(content, vote)
    markdown = MarkdownWriter(base).write(content)
    if len(markdown) < _MIN_CONTENT_CHARS and content is not body:
        markdown = MarkdownWriter(base).write(body)
    return ExtractedPage(
        markdown=_add_metadata(markdown, facts),
        title=title,
        date=facts.date,
        language=facts.language,
        method="html" if vote.is_empty else "trafilatura",
        hidden_count=pruner.hidden_count + invisible_count,
    )


def _add_metadata(markdown: str, facts: PageMetadata) -> str:
    """Add what the page only says to machines: facts that its text does not have."""
    parts = [markdown]
    if len(markdown) < _MIN_CONTENT_CHARS * 10 and facts.description and facts.description not in markdown:
        parts.insert(0, facts.description)
    if beside := missing_facts("\n".join(parts), facts.json_ld):
        parts.append("Structured data of the page:\n" + "\n".join(beside))
    return "\n\n".join(part for part in parts if part)


def _base_url(root: HtmlElement, url: str) -> str:
    for element in root.iter("base"):
        if href := element.get("href"):
            try:
                return urljoin(url, href)
            except ValueError:
                return url
    return url
