"""The text of a PDF, page by page, where pypdf is installed."""

import io
from typing import TYPE_CHECKING

from tooling.contract.fast_dataclass import dataclass

if TYPE_CHECKING:
    import pypdf

MAX_PAGES = 300
MAX_CHARS = 3_000_000
INSTALL_COMMAND = "pip install 'windlass[pdf]'"


class PdfUnreadable(Exception):
    """A PDF whose text cannot be had; the words say why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfText:
    """What a PDF says, and how much of it was read."""

    text: str
    title: str = ""
    date: str = ""
    page_count: int = 0
    pages_read: int = 0


def read_pdf(data: bytes) -> PdfText:
    """Return the text of all pages, up to a limit, or raise PdfUnreadable."""
    try:
        import pypdf
        from pypdf.errors import PyPdfError
    except ImportError as error:
        raise PdfUnreadable(f"it is a PDF, and reading one needs pypdf: {INSTALL_COMMAND}") from error
    try:
        return _read(pypdf.PdfReader(io.BytesIO(data), strict=False))
    # The library quotes what is in the file, so that only the kind of its error is told.
    except (PyPdfError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise PdfUnreadable(f"the PDF cannot be read ({type(error).__name__})") from error


def _read(reader: "pypdf.PdfReader") -> PdfText:
    if reader.is_encrypted and not reader.decrypt(""):
        raise PdfUnreadable("the PDF is locked with a password")
    pages: list[str] = []
    size = 0
    for number, page in enumerate(reader.pages[:MAX_PAGES], 1):
        text = page.extract_text().strip()
        pages.append(f"[page {number}]\n{text}")
        size += len(text)
        if size > MAX_CHARS:
            break
    if not size:
        raise PdfUnreadable("the PDF holds no text, probably pictures of it")
    about = reader.metadata
    made = about.creation_date if about else None
    return PdfText(
        text="\n\n".join(pages),
        title=str(about.title or "") if about else "",
        date=f"{made:%Y-%m-%d}" if made else "",
        page_count=len(reader.pages),
        pages_read=len(pages),
    )
