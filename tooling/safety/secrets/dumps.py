"""Find known values in dumps: wrapped base64, the columns of xxd, hexdump and od, and values spread over a text."""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator

from tooling.contract.lazy_pattern import lazy_pattern
from tooling.contract.secrets import Span

# `base64` wraps its output; a value may span the end of a line.
_BASE64_BLOCK = lazy_pattern(r"(?:^[ \t]*[A-Za-z0-9+/]{32,}[ \t]*\r?\n)+[ \t]*[A-Za-z0-9+/]*={0,2}", re.MULTILINE)
# An offset, then groups of hexadecimal digits, then possibly the characters themselves.
_HEX_LINE = r"[ \t]*[0-9a-fA-F]{5,8}:?[ \t]+(?:[0-9a-fA-F]{2,8}[ \t]{1,3})*[0-9a-fA-F]{2,8}(?![0-9a-fA-F])[^\n]*"
_HEX_BLOCK = lazy_pattern(rf"^{_HEX_LINE}(?:\n{_HEX_LINE})*", re.MULTILINE)
_HEX_COLUMNS = lazy_pattern(
    r"^[ \t]*[0-9a-fA-F]{5,8}:?[ \t]+((?:[0-9a-fA-F]{2,8}[ \t]{1,3})*[0-9a-fA-F]{2,8})", re.MULTILINE
)
# `xxd -p` wraps plain digits.
_PLAIN_HEX_BLOCK = lazy_pattern(r"(?:^[0-9a-fA-F]{32,}\r?\n)+[0-9a-fA-F]*", re.MULTILINE)
_SPACE = lazy_pattern(r"\s+")
# The offset before each line of a dump, and the prefix of a number.
_OFFSET = lazy_pattern(r"^[ \t]*[0-9a-fA-F]{6,8}:?[ \t]|\b0x", re.MULTILINE)
_SEPARATORS = str.maketrans("", "", " \t\r\n,:")
_BETWEEN = r"[ \t,:]*(?:\r?\n[ \t]*(?:[0-9a-fA-F]{6,8}:?[ \t]+)?)?(?:0x)?"
_MAX_BLOCK = 4_000_000


def find_dumped(text: str, values: Iterable[bytes]) -> list[Span]:
    """Return the spans of dumps that contain one of the values."""
    known = tuple(values)
    if not known:
        return []
    return [span for span, content in _dumps(text) if any(value in content for value in known)]


def find_spread(text: str, forms: Iterable[str]) -> list[Span]:
    """Return the spans of values, in any of these forms, that are spread over lines, columns or lists of numbers."""
    # Without what stands between the characters, a plain search is enough; it is only rarely successful.
    squeezed = _OFFSET.sub("", text).translate(_SEPARATORS)
    found = (form for form in forms if form.translate(_SEPARATORS) in squeezed)
    spread = (_BETWEEN.join(map(re.escape, form.translate(_SEPARATORS))) for form in found)
    return [match.span() for regex in spread for match in re.finditer(regex, text)]


def _dumps(text: str) -> Iterator[tuple[Span, bytes]]:
    """Yield every block that looks like a dump, with its decoded bytes."""
    readers: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = (
        (_BASE64_BLOCK, _read_base64),
        (_PLAIN_HEX_BLOCK, _read_hex),
        (_HEX_BLOCK, _read_columns),
    )
    for pattern, read in readers:
        for block in pattern.finditer(text):
            if len(block[0]) <= _MAX_BLOCK:
                yield block.span(), read(block[0])


def _read_base64(block: str) -> bytes:
    digits = _SPACE.sub("", block).rstrip("=")
    digits = digits[: len(digits) // 4 * 4]
    return base64.b64decode(digits)


def _read_hex(block: str) -> bytes:
    digits = _SPACE.sub("", block)
    try:
        return binascii.unhexlify(digits[: len(digits) // 2 * 2])
    except binascii.Error:
        return b""


def _read_columns(block: str) -> bytes:
    """Return the bytes of a dump; `hexdump` and `od -x` swap each pair of bytes."""
    shown = b"".join(_read_hex(columns) for columns in _HEX_COLUMNS.findall(block))
    even = shown[: len(shown) // 2 * 2]
    swapped = bytes(byte for at in range(0, len(even), 2) for byte in (even[at + 1], even[at]))
    return shown + b"\0" + swapped
