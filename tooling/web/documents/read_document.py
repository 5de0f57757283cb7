"""From the bytes of an answer to the text a model reads: one pure function, run in a worker."""

import json
import re
from dataclasses import replace
from typing import Literal, TypeAlias
from urllib.parse import urljoin

from tooling.contract.fast_dataclass import dataclass
from tooling.web.documents.content_type import Kind, decoded, kind_of, media_type
from tooling.web.html.hidden_unicode import without_invisible

Way: TypeAlias = Literal["auto", "text", "raw"]
Method: TypeAlias = Literal["trafilatura", "html", "raw", "json", "feed", "pdf", "text", "markdown", "xml", "reader"]

_MINIFIED_CHARS = 400
_MOST_INDENTED = 4
_HEAD_CHARS = 8000
_REFRESH = r"<meta[^>]{0,200}http-equiv\s*=\s*[\"']?refresh[^>]{0,200}?url\s*=\s*[\"']?([^\"'>\s;]{1,500})"
_PLAIN_BYTES = bytes([9, 10, *range(32, 127)])
_COMMENT = r"<!--.*?(?:-->|\Z)"
_FENCE = r"(^```.*?(?:^```|\Z))"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came from the web, to be read; `way` is how: as seems best, as plain text, or not at all."""

    body: bytes
    content_type: str = ""
    url: str = ""
    is_cut: bool = False
    way: Way = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The text and what is known about it; `problem` says why there is none.

    `hidden_count` is how many pieces were left out that a person would not see.
    """

    text: str = ""
    title: str = ""
    date: str = ""
    language: str = ""
    method: Method = "raw"
    kind: Kind = "other"
    hidden_count: int = 0
    note: str = ""
    problem: str = ""


def read_at_once(answer: Answer) -> Reading | None:
    """Return the text of an answer that needs no reading: plain words in ASCII, the most common of all."""
    if not answer.body.isascii() or answer.body.translate(None, _PLAIN_BYTES):
        return None
    if kind_of(answer.content_type, answer.body, answer.url) != "text":
        return None
    return Reading(text=answer.body.decode("ascii").strip("\n"), method="text", kind="text")


def read(answer: Answer) -> Reading:
    """Return the text of an answer, whatever it is; it never raises."""
    kind = kind_of(answer.content_type, answer.body, answer.url)
    if kind == "other":
        named = media_type(answer.content_type) or "no known type"
        return Reading(kind=kind, problem=f"it is no text ({named}, {len(answer.body)} bytes)")
    if kind == "pdf":
        return seen(replace(_pdf(answer), kind=kind))
    if kind == "feed" and answer.way != "raw" and (feed := _feed(answer)):
        return seen(replace(feed, kind=kind))
    text = decoded(answer.body, answer.content_type, is_cut=answer.is_cut)
    if answer.way == "raw":
        return seen(Reading(text=text, kind=kind))
    return seen(replace(_of_kind(kind, text, answer), kind=kind))


def _of_kind(kind: Kind, text: str, answer: Answer) -> Reading:
    match kind:
        case "html":
            return replace(_html(text, answer), note=_sent_on(text, answer.url))
        case "json":
            return Reading(text=_json(text), method="json")
        case "markdown":
            return _markdown(text)
        case "xml":
            return Reading(text=text, method="xml")
        case _:
            return Reading(text=text, method="text")


def _html(html: str, answer: Answer) -> Reading:
    if answer.way == "auto":
        from tooling.web.html.extract import extract

        found = extract(html, url=answer.url)
        if found.markdown.strip():
            return Reading(
                text=found.markdown,
                title=found.title,
                date=found.date,
                language=found.language,
                method=found.method,
                hidden_count=found.hidden_count,
            )
    from tooling.web.html.plain_text import plain_html

    plain = plain_html(html, url=answer.url)
    known = Reading(title=plain.title, language=plain.language, hidden_count=plain.hidden_count)
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


def _sent_on(html: str, url: str) -> str:
    """Say where a page sends its readers by itself; such pages have hardly a text of their own."""
    found = re.search(_REFRESH, html[:_HEAD_CHARS], re.IGNORECASE)
    if not found:
        return ""
    try:
        return f"the page sends its readers on to {urljoin(url, found[1].strip())}"
    except ValueError:
        return ""


def _feed(answer: Answer) -> Reading | None:
    from tooling.web.documents.feed import read_feed

    feed = read_feed(answer.body, url=answer.url)
    if feed is None:
        return None
    return Reading(
        text=feed.text,
        title=feed.title,
        date=feed.date,
        language=feed.language,
        method="feed",
        hidden_count=feed.hidden_count,
    )


def _pdf(answer: Answer) -> Reading:
    if answer.is_cut:
        return Reading(problem=f"the PDF is larger than {len(answer.body)} bytes (setting web_max_bytes)")
    from tooling.web.documents.pdf import PdfUnreadable, read_pdf

    try:
        found = read_pdf(answer.body)
    except PdfUnreadable as error:
        return Reading(problem=str(error))
    is_whole = found.pages_read == found.page_count
    note = "" if is_whole else f"the first {found.pages_read} of {found.page_count} pages"
    return Reading(text=found.text, title=found.title, date=found.date, method="pdf", note=note)


def _json(text: str) -> str:
    """Return JSON that can be read in lines; what is none stays as it is."""
    if (text.count("\n") + 1) * _MINIFIED_CHARS > len(text):
        return text
    parts: list[str] = []
    room = len(text) * _MOST_INDENTED
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


def _markdown(text: str) -> Reading:
    parts = re.split(_FENCE, text, flags=re.MULTILINE | re.DOTALL)
    hidden = 0
    for index in range(0, len(parts), 2):
        parts[index], count = re.subn(_COMMENT, "", parts[index], flags=re.DOTALL)
        hidden += count
    return Reading(text="".join(parts), method="markdown", hidden_count=hidden)


def seen(reading: Reading) -> Reading:
    """Return the reading without characters that nobody sees."""
    text, dropped = without_invisible(reading.text.replace("\r\n", "\n").replace("\r", "\n"))
    title, _ = without_invisible(reading.title)
    return replace(
        reading,
        text=text.strip("\n"),
        title=" ".join(title.split())[:300],
        date=" ".join(reading.date.split())[:60],
        language=" ".join(reading.language.split())[:20],
        hidden_count=reading.hidden_count + dropped,
    )
