"""What an answer is: by what its bytes say, then by what the server says, then by its name."""

import re
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

Kind: TypeAlias = Literal["html", "markdown", "text", "json", "feed", "xml", "pdf", "other"]

_LOOKED_AT = 2048
# Whatever a comment has taken stays taken: a row of comments could be divided in more ways than there is time for.
_HTML_START = rb"(?:\xef\xbb\xbf)?\s*+(?>(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|title|script|meta)\b"
_XML_START = rb"(?:\xef\xbb\xbf)?\s*<\?xml\b"
_FEED_START = rb"<(?:rss|feed|rdf:RDF)[\s>]"
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MARKDOWN_NAMES = (".md", ".markdown", ".mdx")
_VAGUE = ("", "application/octet-stream", "text/plain", "binary/octet-stream", "application/unknown", "unknown/unknown")
_TEXTS = (
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
_NAMES: tuple[tuple[Kind, tuple[str, ...]], ...] = (
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


def kind_of(content_type: str, body: bytes, url: str = "") -> Kind:
    """Return what a body is to be read as; `other` for what is no text."""
    beginning = body[:_LOOKED_AT]
    named = media_type(content_type)
    said = next((kind for kind, names in _NAMES if named in names), None)
    if b"%PDF-" in beginning[:1024] and (said in (None, "html", "pdf") or named in _VAGUE):
        return "pdf"
    if said == "pdf":
        return "pdf"
    if _is_binary(beginning):
        return "other"
    if said in ("html", "markdown", "json"):
        return _checked_json(beginning) if said == "json" else said
    if re.match(_XML_START, beginning) or said in ("xml", "feed") or named.endswith("+xml"):
        return _xml(beginning, said)
    return _vague(named, beginning, url)


def _xml(beginning: bytes, said: Kind | None) -> Kind:
    if re.search(_FEED_START, beginning):
        return "feed"
    if re.search(rb"<html[\s>]", beginning, re.IGNORECASE):
        return "html"
    return "feed" if said == "feed" else "xml"


def _vague(named: str, beginning: bytes, url: str) -> Kind:
    if named in _VAGUE and re.match(_HTML_START, beginning, re.IGNORECASE | re.DOTALL):
        return "html"
    if named.endswith("+json"):
        return "json"
    if urlsplit(url).path.lower().endswith(_MARKDOWN_NAMES) and named in _VAGUE:
        return "markdown"
    if named.startswith("text/") or named in _TEXTS or named in _VAGUE:
        return "text"
    return "other"


def _checked_json(beginning: bytes) -> Kind:
    """Servers call their error pages JSON as well."""
    return "html" if re.match(_HTML_START, beginning, re.IGNORECASE | re.DOTALL) else "json"


def _is_binary(beginning: bytes) -> bool:
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
        # A text in words of two bytes says so; its zeros are letters.
        return False
    return _BINARY.search(beginning) is not None
