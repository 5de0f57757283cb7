"""What an answer is: by what its bytes say, then by what the server says, then by its name."""

import codecs
import re
from collections.abc import Iterator
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

ContentKind: TypeAlias = Literal["html", "markdown", "text", "json", "feed", "xml", "pdf", "other"]

_SNIFF_BYTES = 2048
# Whatever a comment has taken stays taken: a row of comments could be divided in more ways than there is time for.
_HTML_START = rb"(?:\xef\xbb\xbf)?\s*+(?>(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|title|script|meta)\b"
_XML_START = rb"(?:\xef\xbb\xbf)?\s*<\?xml\b"
_FEED_START = rb"<(?:rss|feed|rdf:RDF)[\s>]"
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
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
    """Return the bare type of a header, or nothing when it is none."""
    named = content_type.partition(";")[0].strip().lower()
    return named if re.fullmatch(r"[a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,80}", named) else ""


def detect_kind(content_type: str, body: bytes, url: str = "") -> ContentKind:
    """Return what a body is to be read as; `other` for what is no text."""
    beginning = body[:_SNIFF_BYTES]
    named = media_type(content_type)
    said = next((kind for kind, names in _KIND_TYPES if named in names), None)
    if b"%PDF-" in beginning[:1024] and (said in (None, "html", "pdf") or named in _GENERIC_TYPES):
        return "pdf"
    if said == "pdf":
        return "pdf"
    if _is_binary(beginning):
        return "other"
    if said in ("html", "markdown", "json"):
        return _json_or_html(beginning) if said == "json" else said
    if re.match(_XML_START, beginning) or said in ("xml", "feed") or named.endswith("+xml"):
        return _xml_kind(beginning, said)
    return _generic_kind(named, beginning, url)


def _xml_kind(beginning: bytes, said: ContentKind | None) -> ContentKind:
    if re.search(_FEED_START, beginning):
        return "feed"
    if re.search(rb"<html[\s>]", beginning, re.IGNORECASE):
        return "html"
    return "feed" if said == "feed" else "xml"


def _generic_kind(named: str, beginning: bytes, url: str) -> ContentKind:
    if named in _GENERIC_TYPES and re.match(_HTML_START, beginning, re.IGNORECASE | re.DOTALL):
        return "html"
    if named.endswith("+json"):
        return "json"
    if urlsplit(url).path.lower().endswith(_MARKDOWN_NAMES) and named in _GENERIC_TYPES:
        return "markdown"
    if named.startswith("text/") or named in _TEXT_TYPES or named in _GENERIC_TYPES:
        return "text"
    return "other"


def _json_or_html(beginning: bytes) -> ContentKind:
    """Servers call their error pages JSON as well."""
    return "html" if re.match(_HTML_START, beginning, re.IGNORECASE | re.DOTALL) else "json"


def _is_binary(beginning: bytes) -> bool:
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
        # A text in words of two bytes says so; its zeros are letters.
        return False
    return _BINARY.search(beginning) is not None


_DECLARATION_BYTES = 4096
_GUESS_BYTES = 20_000
# Fewer letters beyond ASCII than this could be anything; what is likeliest is as good as a guess.
_MIN_GUESS_BYTES = 20
_NON_ASCII = bytes(range(128, 256))
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What browsers read for these names: most servers that send them mean the larger sets.
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


def decode_text(data: bytes, content_type: str = "", *, is_cut: bool = False) -> str:
    """Return the text; a wrong label does not garble it, and what fits nothing is replaced, never an error."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    for name in _candidates(data, content_type):
        text = _decode_strict(data, name, is_cut=is_cut)
        if text is not None:
            return text
    return data.decode("utf-8", "replace")


def _candidates(data: bytes, content_type: str) -> Iterator[str]:
    labels = [_codec_name(found[1]) for found in [re.search(_HEADER_CHARSET, content_type, re.IGNORECASE)] if found]
    beginning = data[:_DECLARATION_BYTES]
    for pattern in (_XML_ENCODING, _META_CHARSET):
        if found := re.search(pattern, beginning, re.IGNORECASE):
            name = _codec_name(found[1].decode("ascii"))
            # A page that can be read as ASCII so far is not written in words of two bytes, whatever it says.
            labels.append("utf-8" if name.startswith("utf") else name)
    if all(label in ("", *_UNRELIABLE_LABELS) for label in labels):
        # Nobody writes text that is valid UTF-8 by accident, and many servers call everything Latin-1.
        yield "utf-8"
    yield from filter(None, labels)
    yield "utf-8"
    if len(data) - len(data.translate(None, _NON_ASCII)) >= _MIN_GUESS_BYTES:
        yield _guess_charset(data)
    yield "cp1252"


def _codec_name(label: str) -> str:
    """Return the codec for a label, or nothing; only those for text, so that no label runs a decompressor."""
    try:
        name = codecs.lookup(label.strip()).name
    except (LookupError, ValueError):
        return ""
    name = _BROWSER_ALIASES.get(name, name)
    return name if re.fullmatch(_TEXT_CODECS, name) else ""


def _decode_strict(data: bytes, name: str, *, is_cut: bool) -> str | None:
    try:
        # A page that was cut may end in the middle of a character.
        return codecs.getincrementaldecoder(name)("strict").decode(data, final=not is_cut)
    except (UnicodeDecodeError, LookupError):
        return None


def _guess_charset(data: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_GUESS_BYTES]).best()
    return _codec_name(best.encoding) or "cp1252" if best else "cp1252"
