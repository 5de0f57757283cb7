"""Render a page for the model: text with its origin, marked as untrusted, in parts if it is long."""

import re
from collections.abc import Sequence
from http import HTTPStatus

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.image import Image
from tooling.images.header import ImageHeader
from tooling.output import trim_fetch_output
from tooling.web.documents.read_document import ParsedDocument
from tooling.web.passages import Passage

_TAG = "web"
# Full-width and small variants of the bracket and the slash look the same to some models.
_OWN_TAG = rf"[<\uff1c\ufe64](?=[\s/\uff0f]*{_TAG}\b)"


def wrap_untrusted(text: str, *, origin: str) -> str:
    """Wrap text from outside in a tag with its origin; the text cannot close or imitate the tag."""
    inner = re.sub(_OWN_TAG, "&lt;", text, flags=re.IGNORECASE)
    return f'<{_TAG} origin="{_escape_attribute(origin)}">\n{inner}\n</{_TAG}>'


def _escape_attribute(text: str) -> str:
    return " ".join(text.split()).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


# Room for the tags, header and notices around the text.
_OVERHEAD_CHARS = 1500
_LONGEST_LINE = 2000

NO_TEXT = "(no text)"
TOO_LARGE = "the page exceeds the download limit; this is the text of its beginning"
VIA_READER = "read by the reader service"
FROM_CACHE = "from the cache; no_cache=true fetches it again"
# The start of the notice that trim_fetch_output appends.
_TRIM_NOTICE = "\n[... "


@dataclass(frozen=True, slots=True, kw_only=True)
class WebImage:
    """A fetched image, already scaled for models."""

    data: bytes
    header: ImageHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A fetched page: the requested URL, the final URL and the document, or the image that it is."""

    requested_url: str
    url: str
    document: ParsedDocument
    is_truncated: bool = False
    is_from_cache: bool = False
    image: WebImage | None = None

    @property
    def text(self) -> str:
        return self.document.text


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePart:
    """A part of a page as the model reads it; `is_complete` if it is the entire page."""

    content: str
    is_complete: bool


def render_from_offset(page: Page, offset: int, *, max_chars: int, saved_to: str | None) -> PagePart:
    """Render a page from an offset; if it does not fit, say which offset continues it."""
    limit = max(max_chars - _OVERHEAD_CHARS - len(page.url) * 2, 0)
    shown, count = _fit(page.text[offset:], page.document.method, limit)
    body = wrap_untrusted(f"{_header(page)}\n\n{shown or NO_TEXT}", origin=page.url)
    if not offset and count == len(page.text):
        return PagePart(content=f"{body}{_notices(page)}", is_complete=True)
    where = f"characters {offset}-{offset + count} of {len(page.text)}"
    more = f"; continue with offset={offset + count}" if offset + count < len(page.text) else ""
    return PagePart(content=f"{body}\n[{where}{more}{_full_text(saved_to)}]{_notices(page)}", is_complete=False)


def render_image(page: Page, image: Image) -> str:
    """Render the text that goes with an image."""
    body = wrap_untrusted(f"{_header(page)}\n\n{image.description}", origin=page.url)
    return f"{body}{_notices(page)}"


def render_passages(page: Page, query: str, found: Sequence[Passage], *, saved_to: str | None) -> PagePart:
    """Render the passages of a page that match a query, or its beginning if none does."""
    if not found:
        lead = f"{_header(page)}\n\n{page.text[:1000]}"
        body = wrap_untrusted(lead, origin=page.url)
        note = f"[{no_passage(query)}; this is the beginning of {len(page.text)} characters{_full_text(saved_to)}]"
        return PagePart(content=f"{body}\n{note}{_notices(page)}", is_complete=False)
    text = "\n\n".join(map(_format_passage, found))
    body = wrap_untrusted(f"{_header(page)}\n\n{text}", origin=page.url)
    count = f"{len(found)} passage{'' if len(found) == 1 else 's'}"
    size = f"{len(page.text)} characters"
    note = f"[{count} about {query!r} out of {size}; offset=N shows everything from there{_full_text(saved_to)}]"
    return PagePart(content=f"{body}\n{note}{_notices(page)}", is_complete=False)


def no_passage(query: str) -> str:
    """Return the notice for a query that matches nothing."""
    return f"no passage is about {query!r}"


def _full_text(saved_to: str | None) -> str:
    return f"; full text: {saved_to}" if saved_to else ""


def excerpt(page: Page, max_chars: int = 500) -> str:
    """Return the beginning of an error page, marked as untrusted."""
    text = page.text.strip()
    return wrap_untrusted(text[:max_chars] + (" …" if len(text) > max_chars else ""), origin=page.url) if text else ""


def format_status(status: int) -> str:
    """Return a status code with its reason phrase."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _fit(text: str, method: str, limit: int) -> tuple[str, int]:
    """Return as much of a text as fits, preferably up to the end of a line, and how many characters that is."""
    shown = trim_fetch_output(text, reason=method, limit=limit)
    if shown is text:
        return text, len(text)
    head, mark, notice = shown.rpartition(_TRIM_NOTICE)
    last_line = head.rfind("\n") + 1
    if last_line > len(head) - _LONGEST_LINE:
        head = head[:last_line]
    return f"{head.rstrip()}{mark}{notice}", len(head)


def _header(page: Page) -> str:
    document = page.document
    lines = [
        f"Title: {document.title}" if document.title else "",
        f"URL: {page.url}" + (f" (requested: {page.requested_url})" if page.requested_url != page.url else ""),
        f"Date: {document.date}" if document.date else "",
        f"Language: {document.language}" if document.language else "",
        f"Note: {document.note}" if document.note else "",
    ]
    return "\n".join(line for line in lines if line)


def _format_passage(passage: Passage) -> str:
    heading = f" under {passage.heading!r}" if passage.heading and passage.heading not in passage.text else ""
    return f"[offset {passage.offset}{heading}]\n{passage.text}"


def _notices(page: Page) -> str:
    hidden = page.document.hidden_count
    notices = [
        TOO_LARGE if page.is_truncated else "",
        f"{hidden} hidden element{'' if hidden == 1 else 's'} removed" if hidden else "",
        VIA_READER if page.document.method == "reader" else "",
        FROM_CACHE if page.is_from_cache else "",
    ]
    return "".join(f"\n[{notice}]" for notice in notices if notice)
