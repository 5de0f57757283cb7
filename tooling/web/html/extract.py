"""Extract the main content of an HTML page as Markdown, without boilerplate and hidden text."""

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
# The parser compares each attribute of a tag with all others: some thousand take seconds, more take minutes.
_MAX_TAG_PARTS = 1_500
_BULKY = ("script", "svg")
_DATA_URI = r"(?<==[\"'])data:[^\"'<>]{500,}"


def has_oversized_tag(html: str) -> bool:
    """Return whether a page has a tag with thousands of attributes; a single pass for any input."""
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
    """Remove scripts, SVG and data URIs from a page in linear time."""
    html = re.sub(_DATA_URI, "", html)
    for name in _BULKY:
        html = "".join(_outside_elements(html, name))
    return html


def _outside_elements(html: str, name: str) -> Iterator[str]:
    opening, closing = (re.compile(rf"<{slash}{name}\b", re.IGNORECASE) for slash in ("", "/"))
    at = 0
    while (start := opening.search(html, at)) and (end := closing.search(html, start.end())):
        # Structured data is in script elements too.
        is_data = "ld+json" in html[start.start() : start.start() + 200]
        yield html[at : end.start() if is_data else start.start()]
        at = end.start()
    yield html[at:]


ExtractMethod: TypeAlias = Literal["trafilatura", "html"]

# Beyond these a tree takes too much time and memory; the page is then read as plain text in one pass.
MAX_CHARS = 1_000_000
MAX_ELEMENTS = 40_000
MAX_DEPTH = 200
_MIN_CONTENT_CHARS = 40
_META_CHARSET = rb"""<meta[^>]{0,200}charset\s*=\s*["']?([\w.:-]{1,40})"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedPage:
    """The extracted page; `hidden_count` is how many hidden elements were removed.

    `method` is "trafilatura" if it helped to find the content, "html" if this is the text of the entire page.
    """

    markdown: str
    title: str = ""
    date: str = ""
    language: str = ""
    method: ExtractMethod = "trafilatura"
    hidden_count: int = 0


def extract(html: str | bytes, *, url: str = "") -> ExtractedPage:
    """Return the content of a page; a slow pure function, meant for a worker. Never raises."""
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
    """Decode a page by its byte order mark, its meta charset, as UTF-8, or else as Windows-1252."""
    for bom, name in ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if data.startswith(bom):
            return data.decode(name, "replace").lstrip("\ufeff")
    declared = re.search(_META_CHARSET, data[:4096], re.IGNORECASE)
    names = [declared[1].decode("ascii", "replace")] if declared else []
    for name in (*names, "utf-8"):
        try:
            return data.decode(name)
        except (LookupError, UnicodeError):
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
    """Parse the content of noframes elements, which the parser leaves as text."""
    for element in list(root.iter("noframes")):
        if "<" in (element.text or "") and not len(element):
            inner = lxml.html.fragment_fromstring(element.text or "", create_parent="div")
            element.text = None
            element.append(inner)


def _close_head(root: HtmlElement) -> None:
    """Move content from the head to the body: the parser does not end the head at newer elements."""
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
    """Return whether a tree is within the limits on depth and size."""
    count = depth = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        count += event == "start"
        if depth > MAX_DEPTH or count > MAX_ELEMENTS:
            return False
    return True


def _extract_tree(root: HtmlElement, url: str, invisible_count: int) -> ExtractedPage:
    metadata = PageMetadata(root)
    base = _base_url(root, url)
    pruner = Pruner(root)
    pruner.prune()
    body = root.find("body")
    body = root if body is None else body
    reference = TrafilaturaText(body)
    # The content of frames is on other pages, so their addresses are the content here.
    content = body if next(root.iter("frameset"), None) is not None else find_main_content(body, reference)
    title = metadata.title(content)
    pruner.prune_link_lists(content)
    trim_edges(content, reference)
    markdown = MarkdownWriter(base).write(content)
    if len(markdown) < _MIN_CONTENT_CHARS and content is not body:
        markdown = MarkdownWriter(base).write(body)
    return ExtractedPage(
        markdown=_add_metadata(markdown, metadata),
        title=title,
        date=metadata.date,
        language=metadata.language,
        method="html" if reference.is_empty else "trafilatura",
        hidden_count=pruner.hidden_count + invisible_count,
    )


def _add_metadata(markdown: str, metadata: PageMetadata) -> str:
    """Add the description and the structured data that the text lacks."""
    parts = [markdown]
    if len(markdown) < _MIN_CONTENT_CHARS * 10 and metadata.description and metadata.description not in markdown:
        parts.insert(0, metadata.description)
    if missing := missing_facts("\n".join(parts), metadata.json_ld):
        parts.append("Structured data of the page:\n" + "\n".join(missing))
    return "\n\n".join(part for part in parts if part)


def _base_url(root: HtmlElement, url: str) -> str:
    for element in root.iter("base"):
        if href := element.get("href"):
            try:
                return urljoin(url, href)
            except ValueError:
                return url
    return url
