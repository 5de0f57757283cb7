"""A page as fetch_page hands it out: text with its origin, marked as data, in parts if it is long."""

import re
from collections.abc import Sequence
from http import HTTPStatus

from tooling.contract.fast_dataclass import dataclass
from tooling.output import trim_fetch_output
from tooling.web.documents.read_document import ParsedDocument
from tooling.web.passages import Passage

_TAG = "web"
# The wide and the small form of the bracket and of the slash look the same to some readers.
_OWN_TAG = rf"[<\uff1c\ufe64](?=[\s/\uff0f]*{_TAG}\b)"


def wrap_untrusted(text: str, *, origin: str) -> str:
    """Return the text between marks that say where it comes from."""
    inner = re.sub(_OWN_TAG, "&lt;", text, flags=re.IGNORECASE)
    return f'<{_TAG} origin="{_escape_attribute(origin)}">\n{inner}\n</{_TAG}>'


def _escape_attribute(text: str) -> str:
    return " ".join(text.split()).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


# What stands around the text: marks, title, notices.
_OVERHEAD_CHARS = 1500
_LONGEST_LINE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What was asked for, where it was found, and what it says."""

    requested_url: str
    url: str
    document: ParsedDocument
    is_cut: bool = False
    is_from_cache: bool = False

    @property
    def text(self) -> str:
        """Return the whole text."""
        return self.document.text


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePart:
    """A part of a page as a model reads it; `is_whole` says that nothing of the page is missing."""

    content: str
    is_complete: bool


def render_from_offset(page: Page, offset: int, *, most_chars: int, kept_at: str | None) -> PagePart:
    """Return a page from a place on, with how to go on where it does not fit."""
    rest = page.text[offset:]
    room = max(most_chars - _OVERHEAD_CHARS - len(page.url) * 2, 0)
    shown, count = _fit(rest, page.document.method, room)
    body = wrap_untrusted(f"{_header(page)}\n\n{shown or '(no text)'}", origin=page.url)
    is_whole = not offset and count == len(page.text)
    if is_whole:
        return PagePart(content=f"{body}{_notices(page)}", is_complete=True)
    where = f"characters {offset}-{offset + count} of {len(page.text)}"
    more = f"; go on with offset={offset + count}" if offset + count < len(page.text) else ""
    whole = f"; full text: {kept_at}" if kept_at else ""
    return PagePart(content=f"{body}\n[{where}{more}{whole}]{_notices(page)}", is_complete=False)


def render_passages(page: Page, query: str, found: Sequence[Passage], *, kept_at: str | None) -> PagePart:
    """Return the passages of a page that were found to fit a query."""
    whole = f"; full text: {kept_at}" if kept_at else ""
    if not found:
        lead = f"{_header(page)}\n\n{page.text[:1000]}"
        body = wrap_untrusted(lead, origin=page.url)
        note = f"[no passage is about {query!r}; this is the beginning of {len(page.text)} characters{whole}]"
        return PagePart(content=f"{body}\n{note}{_notices(page)}", is_complete=False)
    text = "\n\n".join(map(_format_passage, found))
    body = wrap_untrusted(f"{_header(page)}\n\n{text}", origin=page.url)
    count = f"{len(found)} passage{'' if len(found) == 1 else 's'}"
    note = f"[{count} about {query!r} of {len(page.text)} characters; offset=N shows all from there on{whole}]"
    return PagePart(content=f"{body}\n{note}{_notices(page)}", is_complete=False)


def excerpt(page: Page, most_chars: int = 500) -> str:
    """Return the beginning of a page as data; for what a server says about an error."""
    text = page.text.strip()
    return wrap_untrusted(text[:most_chars] + (" …" if len(text) > most_chars else ""), origin=page.url) if text else ""


def format_status(status: int) -> str:
    """Return a status as people know it."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _fit(text: str, method: str, room: int) -> tuple[str, int]:
    """Return as much of a text as there is room for, up to the end of a line if one is near, and how much that is."""
    shown = trim_fetch_output(text, reason=method, limit=room)
    if shown is text:
        return text, len(text)
    kept, mark, words = shown.rpartition("\n[... cut at ")
    line = kept.rfind("\n") + 1
    if line > len(kept) - _LONGEST_LINE:
        kept = kept[:line]
    return f"{kept.rstrip()}{mark}{words}", len(kept)


def _header(page: Page) -> str:
    reading = page.document
    lines = [
        f"Title: {reading.title}" if reading.title else "",
        f"URL: {page.url}" + (f" (asked for {page.requested_url})" if page.requested_url != page.url else ""),
        f"Date: {reading.date}" if reading.date else "",
        f"Language: {reading.language}" if reading.language else "",
        f"Note: {reading.note}" if reading.note else "",
    ]
    return "\n".join(line for line in lines if line)


def _format_passage(passage: Passage) -> str:
    heading = f" under {passage.heading!r}" if passage.heading and passage.heading not in passage.text else ""
    return f"[offset {passage.offset}{heading}]\n{passage.text}"


def _notices(page: Page) -> str:
    reading = page.document
    hidden = reading.hidden_count
    notices = [
        "the page is larger than may be loaded; this is the text of its beginning" if page.is_cut else "",
        f"{hidden} hidden piece{'' if hidden == 1 else 's'} left out" if hidden else "",
        f"read by {reading.method}" if reading.method == "reader" else "",
        "from the cache; no_cache=true asks again" if page.is_from_cache else "",
    ]
    return "".join(f"\n[{notice}]" for notice in notices if notice)
