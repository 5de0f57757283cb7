"""Detect the content kind and charset of a response from its bytes, its headers and its file name."""

import codecs
import re
from collections.abc import Iterator
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from tooling.contract.lazy_pattern import lazy_pattern

ContentKind: TypeAlias = Literal["html", "markdown", "text", "json", "feed", "xml", "pdf", "other"]

_SNIFF_BYTES = 2048
# Possessive and atomic groups: with backtracking, a row of comments would take exponential time.
_HTML_START = rb"(?:\xef\xbb\xbf)?\s*+(?>(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|title|script|meta)\b"
_XML_START = rb"(?:\xef\xbb\xbf)?\s*<\?xml\b"
_FEED_START = rb"<(?:rss|feed|rdf:RDF)[\s>]"
_BINARY = lazy_pattern(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MARKDOWN_NAMES = (".md", ".markdown", ".mdx")
_GENERIC_TYPES = (
    "",
    "application/octet-stream",
    "text/plain",
    "binary/octet-stream",
    "application/unknown",
    "unknown/unknown",
)
_TEXT_TYPES = (
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/x-sh",
    "application/x-yaml",
    "application/yaml",
    "application/toml",
    "application/sql",
    "application/x-httpd-php",
    "application/graphql",
    "application/x-www-form-urlencoded",
    "application/rtf",
    "message/rfc822",
    "image/svg+xml",
)
_KIND_TYPES: tuple[tuple[ContentKind, tuple[str, ...]], ...] = (
    ("html", ("text/html", "application/xhtml+xml")),
    ("markdown", ("text/markdown", "text/x-markdown")),
    ("pdf", ("application/pdf", "application/x-pdf")),
    ("feed", ("application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json")),
    ("json", ("application/json", "text/json", "application/x-ndjson", "application/jsonl")),
    ("xml", ("application/xml", "text/xml")),
)


def media_type(content_type: str) -> str:
    """Return the media type of a Content-Type header without parameters, or an empty string if it is invalid."""
    media = content_type.partition(";")[0].strip().lower()
    return media if re.fullmatch(r"[a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,80}", media) else ""


def detect_kind(content_type: str, body: bytes, url: str = "") -> ContentKind:
    """Return how to read a body; `other` if it is not text."""
    start = body[:_SNIFF_BYTES]
    media = media_type(content_type)
    declared = next((kind for kind, names in _KIND_TYPES if media in names), None)
    if b"%PDF-" in start[:1024] and (declared in (None, "html", "pdf") or media in _GENERIC_TYPES):
        return "pdf"
    if declared == "pdf":
        return "pdf"
    if _is_binary(start):
        return "other"
    if declared in ("html", "markdown", "json"):
        return _json_or_html(start) if declared == "json" else declared
    if re.match(_XML_START, start) or declared in ("xml", "feed") or media.endswith("+xml"):
        return _xml_kind(start, declared)
    return _generic_kind(media, start, url)


def _xml_kind(start: bytes, declared: ContentKind | None) -> ContentKind:
    if re.search(_FEED_START, start):
        return "feed"
    if re.search(rb"<html[\s>]", start, re.IGNORECASE):
        return "html"
    return "feed" if declared == "feed" else "xml"


def _generic_kind(media: str, start: bytes, url: str) -> ContentKind:
    if media in _GENERIC_TYPES and re.match(_HTML_START, start, re.IGNORECASE | re.DOTALL):
        return "html"
    if media.endswith("+json"):
        return "json"
    if urlsplit(url).path.lower().endswith(_MARKDOWN_NAMES) and media in _GENERIC_TYPES:
        return "markdown"
    if media.startswith("text/") or media in _TEXT_TYPES or media in _GENERIC_TYPES:
        return "text"
    return "other"


def _json_or_html(start: bytes) -> ContentKind:
    # Servers send HTML error pages with a JSON content type.
    return "html" if re.match(_HTML_START, start, re.IGNORECASE | re.DOTALL) else "json"


def _is_binary(start: bytes) -> bool:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        # With a UTF-16 byte order mark, zero bytes are part of letters.
        return False
    return _BINARY.search(start) is not None


_DECLARATION_BYTES = 4096
_GUESS_BYTES = 20_000
# With fewer non-ASCII bytes than this, charset detection is no better than the default.
_MIN_GUESS_BYTES = 20
_NON_ASCII = bytes(range(128, 256))
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Browsers decode these labels as a superset, because most servers mean the superset.
_BROWSER_ALIASES = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
}
_TEXT_CODECS = (
    r"utf-(?:8|16|32)(?:-[lb]e)?|iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|gb\w+|big5\w*"
    r"|euc_\w+|shift_\w+|iso2022_\w+|tis-620"
)
_HEADER_CHARSET = r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]+)"
_META_CHARSET = rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]+)"
_XML_ENCODING = rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_:.-]+)"
_UNRELIABLE_LABELS = frozenset(("cp1252", "utf-16-le"))


def decode_text(data: bytes, content_type: str = "", *, is_truncated: bool = False) -> str:
    """Decode a body in spite of wrong or missing labels; undecodable bytes are replaced, never an error."""
    for bom, name in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(name, "replace")
    for name in _candidates(data, content_type):
        text = _decode_strict(data, name, is_truncated=is_truncated)
        if text is not None:
            return text
    return data.decode("utf-8", "replace")


def _candidates(data: bytes, content_type: str) -> Iterator[str]:
    labels = [_codec_name(match[1]) for match in [re.search(_HEADER_CHARSET, content_type, re.IGNORECASE)] if match]
    start = data[:_DECLARATION_BYTES]
    for pattern in (_XML_ENCODING, _META_CHARSET):
        if match := re.search(pattern, start, re.IGNORECASE):
            name = _codec_name(match[1].decode("ascii"))
            # A declaration that is readable as ASCII cannot be in UTF-16, even if it says so.
            labels.append("utf-8" if name.startswith("utf") else name)
    if all(label in ("", *_UNRELIABLE_LABELS) for label in labels):
        # Text is hardly ever valid UTF-8 by accident, and many servers label everything Latin-1.
        yield "utf-8"
    yield from filter(None, labels)
    yield "utf-8"
    if len(data) - len(data.translate(None, _NON_ASCII)) >= _MIN_GUESS_BYTES:
        yield _guess_charset(data)
    yield "cp1252"


def _codec_name(label: str) -> str:
    """Return the codec for a label, or an empty string; only text codecs, so that no label runs a decompressor."""
    try:
        name = codecs.lookup(label.strip()).name
    except (LookupError, ValueError):
        return ""
    name = _BROWSER_ALIASES.get(name, name)
    return name if re.fullmatch(_TEXT_CODECS, name) else ""


def _decode_strict(data: bytes, name: str, *, is_truncated: bool) -> str | None:
    try:
        # A truncated page may end in the middle of a character.
        return codecs.getincrementaldecoder(name)("strict").decode(data, final=not is_truncated)
    except (UnicodeDecodeError, LookupError):
        return None


def _guess_charset(data: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_GUESS_BYTES]).best()
    return _codec_name(best.encoding) or "cp1252" if best else "cp1252"
