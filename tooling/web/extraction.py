"""HTML as Markdown: what was written for a reader, without the frame around it and without what a browser hides."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import lxml.html
import trafilatura

Method: TypeAlias = Literal["trafilatura", "html"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """A page as a model reads it; `hidden_count` is how many hidden pieces were dropped.

    `method` says how the text was found: by trafilatura, or as plain text of the whole page where that found nothing.
    """

    markdown: str
    title: str = ""
    date: str = ""
    language: str = ""
    method: Method = "trafilatura"
    hidden_count: int = 0


def extract(html: str | bytes, *, url: str = "") -> Extracted:
    """Return the content of a page; a pure function that takes its time, meant for a worker. It never raises."""
    text = trafilatura.extract(
        html,
        url=url or None,
        output_format="markdown",
        include_formatting=True,
        include_links=True,
        include_tables=True,
        favor_recall=True,
    )
    if not text:
        return Extracted(markdown=_plain(html), method="html")
    known = trafilatura.extract_metadata(html if isinstance(html, str) else html.decode("utf-8", "replace"))
    return Extracted(markdown=text, title=known.title or "", date=known.date or "", language=known.language or "")


def _plain(html: str | bytes) -> str:
    try:
        return str(lxml.html.document_fromstring(html).text_content())
    except (lxml.etree.ParserError, ValueError):
        return html if isinstance(html, str) else html.decode("utf-8", "replace")
