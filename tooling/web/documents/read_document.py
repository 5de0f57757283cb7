"""Convert the bytes of a response to text for the model; a pure function that runs in a worker."""

import json
import re
from dataclasses import replace
from typing import Literal, TypeAlias
from urllib.parse import urljoin

from tooling.contract.fast_dataclass import dataclass
from tooling.images.header import detect_media_type
from tooling.web.documents.content_type import ContentKind, decode_text, detect_kind, media_type
from tooling.web.html.hidden_unicode import strip_invisible

ReadMode: TypeAlias = Literal["auto", "text", "raw"]
ReadMethod: TypeAlias = Literal[
    "trafilatura", "html", "raw", "json", "feed", "pdf", "text", "markdown", "xml", "reader"
]

_MINIFIED_CHARS = 400
_MAX_INDENT_GROWTH = 4
_HEAD_CHARS = 8000
_REFRESH = r"<meta[^>]{0,200}http-equiv\s*=\s*[\"']?refresh[^>]{0,200}?url\s*=\s*[\"']?([^\"'>\s;]{1,500})"
_PLAIN_BYTES = bytes([9, 10, *range(32, 127)])
_COMMENT = r"<!--.*?(?:-->|\Z)"
_FENCE = r"(^```.*?(?:^```|\Z))"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawDocument:
    """A response body to parse; `mode` is the best extraction, plain text, or the source unchanged."""

    body: bytes
    content_type: str = ""
    url: str = ""
    is_truncated: bool = False
    mode: ReadMode = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    """The text of a document and its metadata; `problem` is the reason if there is no text.

    `hidden_count` is how many elements were removed because a human reader would not see them.
    """

    text: str = ""
    title: str = ""
    date: str = ""
    language: str = ""
    method: ReadMethod = "raw"
    kind: ContentKind = "other"
    hidden_count: int = 0
    note: str = ""
    problem: str = ""


def is_image(raw: RawDocument) -> bool:
    """Return whether a body is an image that a model can be shown."""
    return raw.mode == "auto" and bool(detect_media_type(raw.body))


def read_plain_ascii(raw: RawDocument) -> ParsedDocument | None:
    """Return the text of a plain ASCII document, which needs no worker; None for anything else."""
    if not raw.body.isascii() or raw.body.translate(None, _PLAIN_BYTES):
        return None
    if detect_kind(raw.content_type, raw.body, raw.url) != "text":
        return None
    return ParsedDocument(text=raw.body.decode("ascii").strip("\n"), method="text", kind="text")


def read_document(raw: RawDocument) -> ParsedDocument:
    """Return the text of a document of any kind; never raises."""
    kind = detect_kind(raw.content_type, raw.body, raw.url)
    if kind == "other":
        return ParsedDocument(kind=kind, problem=not_text(media_type(raw.content_type), len(raw.body)))
    if kind == "pdf":
        return sanitize(replace(_read_pdf(raw), kind=kind))
    if kind == "feed" and raw.mode != "raw" and (feed := _read_feed(raw)):
        return sanitize(replace(feed, kind=kind))
    text = decode_text(raw.body, raw.content_type, is_truncated=raw.is_truncated)
    if raw.mode == "raw":
        return sanitize(ParsedDocument(text=text, kind=kind))
    return sanitize(replace(_read_by_kind(kind, text, raw), kind=kind))


def not_text(media: str, size: int) -> str:
    """Return the problem of a body that is not text."""
    return f"it is not text ({media or 'unknown type'}, {size} bytes)"


def _read_by_kind(kind: ContentKind, text: str, raw: RawDocument) -> ParsedDocument:
    match kind:
        case "html":
            return replace(_read_html(text, raw), note=_refresh_note(text, raw.url))
        case "json":
            return ParsedDocument(text=_indent_json(text), method="json")
        case "markdown":
            return _read_markdown(text)
        case "xml":
            return ParsedDocument(text=text, method="xml")
        case _:
            return ParsedDocument(text=text, method="text")


def _read_html(html: str, raw: RawDocument) -> ParsedDocument:
    if raw.mode == "auto":
        from tooling.web.html.extract import extract

        page = extract(html, url=raw.url)
        if page.markdown.strip():
            return ParsedDocument(
                text=page.markdown,
                title=page.title,
                date=page.date,
                language=page.language,
                method=page.method,
                hidden_count=page.hidden_count,
            )
    from tooling.web.html.plain_text import html_to_text

    plain = html_to_text(html, url=raw.url)
    document = ParsedDocument(title=plain.title, language=plain.language, hidden_count=plain.hidden_count)
    if plain.text:
        return replace(document, text=plain.text, method="html")
    # The page consists of scripts only, or hides all its text.
    source, comments = re.subn(_COMMENT, "", html, flags=re.DOTALL)
    return replace(
        document,
        text=source if not plain.hidden_count else "",
        method="raw",
        hidden_count=max(comments, plain.hidden_count),
    )


def _refresh_note(html: str, url: str) -> str:
    """Return a note about a meta refresh; such pages have hardly any text."""
    match = re.search(_REFRESH, html[:_HEAD_CHARS], re.IGNORECASE)
    if not match:
        return ""
    try:
        return refreshes_to(urljoin(url, match[1].strip()))
    except ValueError:
        return ""


def refreshes_to(url: str) -> str:
    """Return the note for a page that redirects with a meta refresh."""
    return f"the page redirects to {url}"


def _read_feed(raw: RawDocument) -> ParsedDocument | None:
    from tooling.web.documents.feed import read_feed

    feed = read_feed(raw.body, url=raw.url)
    if feed is None:
        return None
    return ParsedDocument(
        text=feed.text,
        title=feed.title,
        date=feed.date,
        language=feed.language,
        method="feed",
        hidden_count=feed.hidden_count,
    )


def _read_pdf(raw: RawDocument) -> ParsedDocument:
    if raw.is_truncated:
        return ParsedDocument(problem=f"the PDF is larger than {len(raw.body)} bytes (setting web_max_bytes)")
    from tooling.web.documents.pdf import PdfUnreadable, read_pdf

    try:
        pdf = read_pdf(raw.body)
    except PdfUnreadable as error:
        return ParsedDocument(problem=str(error))
    is_complete = pdf.pages_read == pdf.page_count
    note = "" if is_complete else f"the first {pdf.pages_read} of {pdf.page_count} pages"
    return ParsedDocument(text=pdf.text, title=pdf.title, date=pdf.date, method="pdf", note=note)


def _indent_json(text: str) -> str:
    """Indent minified JSON; return anything else unchanged."""
    if (text.count("\n") + 1) * _MINIFIED_CHARS > len(text):
        return text
    parts: list[str] = []
    chars_left = len(text) * _MAX_INDENT_GROWTH
    try:
        for part in json.JSONEncoder(indent=1, ensure_ascii=False).iterencode(json.loads(text)):
            parts.append(part)
            chars_left -= len(part)
            if chars_left < 0:
                # Deeply nested brackets: the indentation would dwarf the content.
                return text
    except (ValueError, RecursionError):
        return text
    return "".join(parts)


def _read_markdown(text: str) -> ParsedDocument:
    parts = re.split(_FENCE, text, flags=re.MULTILINE | re.DOTALL)
    hidden = 0
    for index in range(0, len(parts), 2):
        parts[index], count = re.subn(_COMMENT, "", parts[index], flags=re.DOTALL)
        hidden += count
    return ParsedDocument(text="".join(parts), method="markdown", hidden_count=hidden)


def sanitize(document: ParsedDocument) -> ParsedDocument:
    """Return the document without invisible characters."""
    text, dropped = strip_invisible(document.text.replace("\r\n", "\n").replace("\r", "\n"))
    title, _ = strip_invisible(document.title)
    return replace(
        document,
        text=text.strip("\n"),
        title=" ".join(title.split())[:300],
        date=" ".join(document.date.split())[:60],
        language=" ".join(document.language.split())[:20],
        hidden_count=document.hidden_count + dropped,
    )
