"""From the bytes of an answer to the text a model reads: one pure function, run in a worker."""

import json
import re
from dataclasses import replace
from typing import Literal, TypeAlias
from urllib.parse import urljoin

from tooling.contract.fast_dataclass import dataclass
from tooling.web.documents.content_type import ContentKind, decode_text, detect_kind, media_type
from tooling.web.html.hidden_unicode import strip_invisible

ReadMode: TypeAlias = Literal["auto", "text", "raw"]
Method: TypeAlias = Literal["trafilatura", "html", "raw", "json", "feed", "pdf", "text", "markdown", "xml", "reader"]

_MINIFIED_CHARS = 400
_MAX_INDENT_GROWTH = 4
_HEAD_CHARS = 8000
_REFRESH = r"<meta[^>]{0,200}http-equiv\s*=\s*[\"']?refresh[^>]{0,200}?url\s*=\s*[\"']?([^\"'>\s;]{1,500})"
_PLAIN_BYTES = bytes([9, 10, *range(32, 127)])
_COMMENT = r"<!--.*?(?:-->|\Z)"
_FENCE = r"(^```.*?(?:^```|\Z))"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawDocument:
    """What came from the web, to be read; `way` is how: as seems best, as plain text, or not at all."""

    body: bytes
    content_type: str = ""
    url: str = ""
    is_cut: bool = False
    mode: ReadMode = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    """The text and what is known about it; `problem` says why there is none.

    `hidden_count` is how many pieces were left out that a person would not see.
    """

    text: str = ""
    title: str = ""
    date: str = ""
    language: str = ""
    method: Method = "raw"
    kind: ContentKind = "other"
    hidden_count: int = 0
    note: str = ""
    problem: str = ""


def read_plain_ascii(answer: RawDocument) -> ParsedDocument | None:
    """Return the text of an answer that needs no reading: plain words in ASCII, the most common of all."""
    if not answer.body.isascii() or answer.body.translate(None, _PLAIN_BYTES):
        return None
    if detect_kind(answer.content_type, answer.body, answer.url) != "text":
        return None
    return ParsedDocument(text=answer.body.decode("ascii").strip("\n"), method="text", kind="text")


def read_document(answer: RawDocument) -> ParsedDocument:
    """Return the text of an answer, whatever it is; it never raises."""
    kind = detect_kind(answer.content_type, answer.body, answer.url)
    if kind == "other":
        named = media_type(answer.content_type) or "no known type"
        return ParsedDocument(kind=kind, problem=f"it is no text ({named}, {len(answer.body)} bytes)")
    if kind == "pdf":
        return sanitize(replace(_read_pdf(answer), kind=kind))
    if kind == "feed" and answer.mode != "raw" and (feed := _read_feed(answer)):
        return sanitize(replace(feed, kind=kind))
    text = decode_text(answer.body, answer.content_type, is_cut=answer.is_cut)
    if answer.mode == "raw":
        return sanitize(ParsedDocument(text=text, kind=kind))
    return sanitize(replace(_read_by_kind(kind, text, answer), kind=kind))


def _read_by_kind(kind: ContentKind, text: str, answer: RawDocument) -> ParsedDocument:
    match kind:
        case "html":
            return replace(_read_html(text, answer), note=_refresh_note(text, answer.url))
        case "json":
            return ParsedDocument(text=_indent_json(text), method="json")
        case "markdown":
            return _read_markdown(text)
        case "xml":
            return ParsedDocument(text=text, method="xml")
        case _:
            return ParsedDocument(text=text, method="text")


def _read_html(html: str, answer: RawDocument) -> ParsedDocument:
    if answer.mode == "auto":
        from tooling.web.html.extract import extract

        found = extract(html, url=answer.url)
        if found.markdown.strip():
            return ParsedDocument(
                text=found.markdown,
                title=found.title,
                date=found.date,
                language=found.language,
                method=found.method,
                hidden_count=found.hidden_count,
            )
    from tooling.web.html.plain_text import html_to_text

    plain = html_to_text(html, url=answer.url)
    known = ParsedDocument(title=plain.title, language=plain.language, hidden_count=plain.hidden_count)
    if plain.text:
        return replace(known, text=plain.text, method="html")
    # A page of scripts only, or one that hides everything it has.
    source, comments = re.subn(_COMMENT, "", html, flags=re.DOTALL)
    return replace(
        known,
        text=source if not plain.hidden_count else "",
        method="raw",
        hidden_count=max(comments, plain.hidden_count),
    )


def _refresh_note(html: str, url: str) -> str:
    """Say where a page sends its readers by itself; such pages have hardly a text of their own."""
    found = re.search(_REFRESH, html[:_HEAD_CHARS], re.IGNORECASE)
    if not found:
        return ""
    try:
        return f"the page sends its readers on to {urljoin(url, found[1].strip())}"
    except ValueError:
        return ""


def _read_feed(answer: RawDocument) -> ParsedDocument | None:
    from tooling.web.documents.feed import read_feed

    feed = read_feed(answer.body, url=answer.url)
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


def _read_pdf(answer: RawDocument) -> ParsedDocument:
    if answer.is_cut:
        return ParsedDocument(problem=f"the PDF is larger than {len(answer.body)} bytes (setting web_max_bytes)")
    from tooling.web.documents.pdf import PdfUnreadable, read_pdf

    try:
        found = read_pdf(answer.body)
    except PdfUnreadable as error:
        return ParsedDocument(problem=str(error))
    is_whole = found.pages_read == found.page_count
    note = "" if is_whole else f"the first {found.pages_read} of {found.page_count} pages"
    return ParsedDocument(text=found.text, title=found.title, date=found.date, method="pdf", note=note)


def _indent_json(text: str) -> str:
    """Return JSON that can be read in lines; what is none stays as it is."""
    if (text.count("\n") + 1) * _MINIFIED_CHARS > len(text):
        return text
    parts: list[str] = []
    room = len(text) * _MAX_INDENT_GROWTH
    try:
        for part in json.JSONEncoder(indent=1, ensure_ascii=False).iterencode(json.loads(text)):
            parts.append(part)
            room -= len(part)
            if room < 0:
                # Brackets in brackets: every line would begin with a page of blanks.
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


def sanitize(reading: ParsedDocument) -> ParsedDocument:
    """Return the reading without characters that nobody sees."""
    text, dropped = strip_invisible(reading.text.replace("\r\n", "\n").replace("\r", "\n"))
    title, _ = strip_invisible(reading.title)
    return replace(
        reading,
        text=text.strip("\n"),
        title=" ".join(title.split())[:300],
        date=" ".join(reading.date.split())[:60],
        language=" ".join(reading.language.split())[:20],
        hidden_count=reading.hidden_count + dropped,
    )
