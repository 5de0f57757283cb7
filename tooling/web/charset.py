"""Bytes of a page as text: by its mark, its header, its own words, and by looking, in that order."""

import codecs
import re
from collections.abc import Iterator

_LOOKED_AT = 4096
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
    beginning = data[:_LOOKED_AT]
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
