"""Extract the text of a PDF page by page, if pypdf is installed."""

import io
from typing import TYPE_CHECKING

from tooling.contract.fast_dataclass import dataclass

if TYPE_CHECKING:
    import pypdf

MAX_PAGES = 300
MAX_CHARS = 3_000_000
INSTALL_COMMAND = "pip install 'windlass[pdf]'"
NO_TEXT = "the PDF contains no text, probably only images"
UNREADABLE = "the PDF cannot be read"


class PdfUnreadable(Exception):
    """The text of a PDF cannot be extracted; the message has the reason and a hint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfText:
    """The text of a PDF, its metadata and how many of its pages were read."""

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
        raise PdfUnreadable(f"reading a PDF requires pypdf: {INSTALL_COMMAND}") from error
    try:
        return _read(pypdf.PdfReader(io.BytesIO(data), strict=False))
    # The library's messages quote the file, so only the type of the error is reported.
    except (PyPdfError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise PdfUnreadable(f"{UNREADABLE} ({type(error).__name__})") from error


def _read(reader: "pypdf.PdfReader") -> PdfText:
    if reader.is_encrypted and not reader.decrypt(""):
        raise PdfUnreadable("the PDF is password-protected")
    pages: list[str] = []
    size = 0
    for number, page in enumerate(reader.pages[:MAX_PAGES], 1):
        text = page.extract_text().strip()
        pages.append(f"[page {number}]\n{text}")
        size += len(text)
        if size > MAX_CHARS:
            break
    if not size:
        raise PdfUnreadable(NO_TEXT)
    metadata = reader.metadata
    created = metadata.creation_date if metadata else None
    return PdfText(
        text="\n\n".join(pages),
        title=str(metadata.title or "") if metadata else "",
        date=f"{created:%Y-%m-%d}" if created else "",
        page_count=len(reader.pages),
        pages_read=len(pages),
    )
