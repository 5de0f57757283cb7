"""What an answer is: by what its bytes say, then by what the server says, then by its name."""

import codecs
import re
from collections.abc import Iterator
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


_DECLARATION_BYTES = 4096
_GUESSED_FROM = 20_000
# Fewer letters beyond ASCII than this could be anything; what is likeliest is as good as a guess.
_ENOUGH_TO_GUESS = 20
_BEYOND_ASCII = bytes(range(128, 256))
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What browsers read for these names: most servers that send them mean the larger sets.
_MEANT = {
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
_SETS = (
    r"utf-(?:8|16|32)(?:-[lb]e)?|iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|gb\w+|big5\w*"
    r"|euc_\w+|shift_\w+|iso2022_\w+|tis-620"
)
_IN_TYPE = r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]+)"
_IN_META = rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]+)"
_IN_XML = rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_:.-]+)"
_GUESSES = frozenset(("cp1252", "utf-16-le"))


def decoded(data: bytes, content_type: str = "", *, is_cut: bool = False) -> str:
    """Return the text; a wrong label does not garble it, and what fits nothing is replaced, never an error."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    for name in _candidates(data, content_type):
        text = _strictly(data, name, is_cut=is_cut)
        if text is not None:
            return text
    return data.decode("utf-8", "replace")


def _candidates(data: bytes, content_type: str) -> Iterator[str]:
    labels = [_known(found[1]) for found in [re.search(_IN_TYPE, content_type, re.IGNORECASE)] if found]
    beginning = data[:_DECLARATION_BYTES]
    for pattern in (_IN_XML, _IN_META):
        if found := re.search(pattern, beginning, re.IGNORECASE):
            name = _known(found[1].decode("ascii"))
            # A page that can be read as ASCII so far is not written in words of two bytes, whatever it says.
            labels.append("utf-8" if name.startswith("utf") else name)
    if all(label in ("", *_GUESSES) for label in labels):
        # Nobody writes text that is valid UTF-8 by accident, and many servers call everything Latin-1.
        yield "utf-8"
    yield from filter(None, labels)
    yield "utf-8"
    if len(data) - len(data.translate(None, _BEYOND_ASCII)) >= _ENOUGH_TO_GUESS:
        yield _guess(data)
    yield "cp1252"


def _known(label: str) -> str:
    """Return the codec for a label, or nothing; only those for text, so that no label runs a decompressor."""
    try:
        name = codecs.lookup(label.strip()).name
    except (LookupError, ValueError):
        return ""
    name = _MEANT.get(name, name)
    return name if re.fullmatch(_SETS, name) else ""


def _strictly(data: bytes, name: str, *, is_cut: bool) -> str | None:
    try:
        # A page that was cut may end in the middle of a character.
        return codecs.getincrementaldecoder(name)("strict").decode(data, final=not is_cut)
    except (UnicodeDecodeError, LookupError):
        return None


def _guess(data: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_GUESSED_FROM]).best()
    return _known(best.encoding) or "cp1252" if best else "cp1252"
