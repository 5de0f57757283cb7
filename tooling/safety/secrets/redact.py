"""Masks secrets in text: the exact values we know of, and what looks like a token of a known maker."""

import base64
import json
import re
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from tooling.safety.secrets.patterns import (
    ANCHORED_PATTERNS,
    MIN_TOKEN_LENGTH,
    PREFIXED_PATTERNS,
    TOKEN_PATTERNS,
    AnchoredPattern,
)

MASK = "[REDACTED]"
# Shorter "secrets" are words; masking them would mangle ordinary text.
MIN_VALUE_LENGTH = 6
_MIN_ENCODED_LENGTH = 8
_FILE_CHUNK = 1_000_000
_TEXT_CHUNK = 200_000
_TOKEN_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
# Token characters become "a", all others a blank: long runs are then found at the speed of a plain search.
_TOKEN_TABLE = bytes(97 if byte in _TOKEN_BYTES else 32 for byte in range(256))
# With the blank before it, each run is found once, at its beginning.
_TOKEN_START = b" " + b"a" * MIN_TOKEN_LENGTH
# What may stand before a run and belong to it: `\n` or `%3D` in front of a token, or the name of its maker.
_PRECEDING_BYTES = frozenset(b"\\%.:")
_PREFIXES = frozenset(beginning.encode() for secret in TOKEN_PATTERNS for beginning in secret.prefixes)
# A removed line of a diff has a dash before its first word.
_DASHES = frozenset(b"-_")
_FIRST_BYTES = _DASHES | {beginning[0] for beginning in _PREFIXES}
_PRINTABLE = "".join(map(chr, range(33, 127)))
_MAX_TOKEN_LENGTH, _MAX_KEY_LENGTH = 4000, 20_000
_KEY_BEGIN, _KEY_END = "-----BEGIN", "-----END"


def _to_ascii(text: str) -> bytes:
    return text.encode("ascii", "replace")


class _SearchText:
    """A text, and the same with one byte for each character: searched faster, and places in both are the same."""

    __slots__ = ("flat", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.flat = _to_ascii(text)

    def with_text(self, text: str) -> "_SearchText":
        return self if text is self.text else _SearchText(text)


class Redactor:
    """Replaces known values (raw, base64, url-encoded) and anchored token patterns by a mask."""

    def __init__(self, known_values: Iterable[str] = ()) -> None:
        forms = {form for value in known_values for form in _encoded_forms(value)}
        # Longest first, so that a value that contains another one disappears whole.
        self._values = [(_to_ascii(form), form) for form in sorted(forms, key=len, reverse=True)]
        # Passphrases: all other secrets are one run of characters without a blank.
        self._values_with_spaces = [form for form in forms if form.strip(_PRINTABLE)]

    def redact(self, text: str) -> str:
        """Return the text with every secret masked."""
        page = self._mask_values(_SearchText(text))
        page = page.with_text(_mask_tokens(page.text, page.flat))
        for secret in ANCHORED_PATTERNS:
            # Searching for a fixed piece of text is cheap; a regular expression over a megabyte is not.
            if secret.required_byte in page.flat and secret.anchor in page.flat:
                page = page.with_text(_mask_anchored(page, secret))
        return page.text

    def safe_length(self, text: str) -> int:
        """Return the place up to which a text that goes on holds no beginning of a secret without its end."""
        tail = text[-_MAX_TOKEN_LENGTH:]
        end = len(text) - len(tail) + len(tail.rstrip(_PRINTABLE))
        key = text.rfind(_KEY_BEGIN, max(0, end - _MAX_KEY_LENGTH))
        if key >= 0 and _KEY_END not in text[key:]:
            end = min(end, key)
        return min((_end_before(value, text, end) for value in self._values_with_spaces), default=end)

    def mask_known(self, text: str) -> str:
        """Return the text with the values we know of masked, and nothing that only looks like a secret."""
        return self._mask_values(_SearchText(text)).text

    def _mask_values(self, page: "_SearchText") -> "_SearchText":
        for seen, value in self._values:
            if seen in page.flat:
                page = page.with_text(page.text.replace(value, MASK))
        return page

    def redact_chunks(self, text: str) -> Iterator[str]:
        """Yield a long text masked, a piece at a time: none takes so long that other threads have to wait for it."""
        start = 0
        while start < len(text):
            end = _chunk_end(text, start)
            yield self.redact(text[start:end])
            start = end

    def redact_file(self, path: Path) -> None:
        """Mask a file in place, piece by piece, so that its size does not matter."""
        masked = path.with_name(path.name + ".masked")
        with path.open("rb") as source, masked.open("wb") as target:
            masked.chmod(0o600)
            _read_chunks(source.read, lambda text: target.write(self.redact(text).encode("utf-8", "surrogateescape")))
        masked.replace(path)


def _end_before(value: str, text: str, end: int) -> int:
    """Return the place, at most `end`, that lies inside no occurrence of a value, not even of one that has begun."""
    held = next((size for size in range(len(value) - 1, 0, -1) if text.endswith(value[:size])), 0)
    end = min(end, len(text) - held)
    inside = text.find(value, max(0, end - len(value) + 1))
    return min(end, inside) if inside >= 0 else end


@cache
def _compiled_patterns() -> tuple[dict[str, re.Pattern[str]], re.Pattern[str]]:
    """Return the expressions by the first three characters of what they match, and the one for led runs."""
    by_beginning: dict[str, list[str]] = {}
    for secret in TOKEN_PATTERNS:
        for beginning in secret.prefixes:
            by_beginning.setdefault(beginning, []).append(secret.regex)
    return {key: re.compile("|".join(found)) for key, found in by_beginning.items()}, re.compile(
        "|".join(PREFIXED_PATTERNS)
    )


def _mask_tokens(text: str, flat: bytes) -> str:
    runs = b" " + flat.translate(_TOKEN_TABLE)
    start = runs.find(_TOKEN_START)
    if start < 0:
        return text
    find, first, beginnings, leads = runs.find, _FIRST_BYTES, _PREFIXES, _PRECEDING_BYTES
    pieces: list[str] = []
    done = 0
    while start >= 0:
        # Most runs are names and hashes, so the beginning is looked at before anything else is.
        mark = flat[start]
        if (mark in first and (mark in _DASHES or flat[start : start + 3] in beginnings)) or flat[start - 1] in leads:
            place = _find_token(text, start)
            if place is not None:
                pieces += (text[done : place[0]], MASK)
                done = place[1]
                start = max(start, done - MIN_TOKEN_LENGTH)
        start = find(_TOKEN_START, start + MIN_TOKEN_LENGTH)
    return "".join((*pieces, text[done:])) if pieces else text


def _find_token(text: str, start: int) -> tuple[int, int] | None:
    """Return where a secret stands that begins with this run, or a few characters into it."""
    known, led = _compiled_patterns()
    before = text[start - 1 : start]
    found = led.match(text, start) if before in (".", ":") else None
    if found is not None:
        return found.span()
    # `\n`, `%3D` and dashes in front of a token belong to the text around it.
    at = start + {"\\": 1, "%": 2}.get(before, 0)
    while text[at : at + 1] in ("-", "_"):
        at += 1
    for place in (start, at):
        regex = known.get(text[place : place + 3])
        if regex is not None and (found := regex.match(text, place)) is not None:
            return found.span()
    return None


def _mask_anchored(page: _SearchText, secret: AnchoredPattern) -> str:
    # The module's own cache of expressions keeps this from compiling twice.
    regex = re.compile(secret.regex)
    text, find = page.text, page.flat.find
    pieces: list[str] = []
    done, at = 0, find(secret.anchor)
    while at >= 0:
        found = regex.match(text, at)
        if found is not None:
            start, end = found.span(regex.groups)
            pieces += (text[done:start], MASK)
            done = end
        at = find(secret.anchor, max(done, at + 1))
    return "".join((*pieces, text[done:])) if pieces else text


def _read_chunks(read: Callable[[int], bytes], take: Callable[[str], object]) -> None:
    """Hand over whole lines, and never the beginning of a private key without its end."""
    rest = ""
    while data := read(_FILE_CHUNK):
        text = rest + data.decode("utf-8", "surrogateescape")
        cut = text.rfind("\n") + 1 or len(text)
        key = text.rfind(_KEY_BEGIN, max(0, cut - _MAX_KEY_LENGTH), cut)
        if key > 0 and _KEY_END not in text[key:cut]:
            cut = key
        take(text[:cut])
        rest = text[cut:]
    take(rest)


def _chunk_end(text: str, start: int) -> int:
    """Return where to cut: after a whole line if one is near, and never between the ends of a private key."""
    end = start + _TEXT_CHUNK
    if end >= len(text):
        return len(text)
    end = text.rfind("\n", start, end) + 1 or end
    key = text.rfind(_KEY_BEGIN, max(start, end - 20_000), end)
    return key if key > start and _KEY_END not in text[key:end] else end


def _encoded_forms(value: str) -> set[str]:
    if len(value) < MIN_VALUE_LENGTH:
        return set()
    quoted = {urllib.parse.quote(value, safe=""), urllib.parse.quote_plus(value), urllib.parse.quote(value)}
    # As it stands inside a JSON text.
    quoted |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    return {value, *quoted, *_base64_forms(value.encode("utf-8", "surrogateescape"))}


def _base64_forms(value: bytes) -> set[str]:
    """Return what stays the same of the encoded value at each of the three places it can start at."""
    forms: set[str] = set()
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * before + value).decode().rstrip("=")
            head = (0, 2, 3)[before]
            tail = len(text) - (1 if (before + len(value)) % 3 else 0)
            if tail - head >= _MIN_ENCODED_LENGTH:
                forms.add(text[head:tail])
    return forms
