"""Mask secrets in text: known values, and anything that looks like a token of a known provider."""

import base64
import json
import re
import urllib.parse
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from tooling.contract.secrets import Span
from tooling.safety.secrets.patterns import (
    ANCHORED_PATTERNS,
    MIN_TOKEN_LENGTH,
    PREFIXED_PATTERNS,
    TOKEN_PATTERNS,
    AnchoredPattern,
)

MASK = "[REDACTED]"
# Shorter values are ordinary words; masking them would garble text.
MIN_VALUE_LENGTH = 6
_MIN_ENCODED_LENGTH = 8
_FILE_CHUNK = 1_000_000
_TEXT_CHUNK = 200_000
_TOKEN_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
# Maps token characters to "a" and all others to a blank, so that a plain search finds long runs.
_TOKEN_TABLE = bytes(97 if byte in _TOKEN_BYTES else 32 for byte in range(256))
# The leading blank makes sure that each run is found once, at its start.
_TOKEN_START = b" " + b"a" * MIN_TOKEN_LENGTH
# Characters before a run that matter: `\n` or `%3D` in front of a token, or the prefix of its provider.
_PRECEDING_BYTES = frozenset(b"\\%.:")
_PREFIXES = frozenset(prefix.encode() for pattern in TOKEN_PATTERNS for prefix in pattern.prefixes)
# In a diff a removed line has a dash before its first word.
_DASHES = frozenset(b"-_")
_FIRST_BYTES = _DASHES | {prefix[0] for prefix in _PREFIXES}
_PRINTABLE = "".join(map(chr, range(33, 127)))
_MAX_TOKEN_LENGTH, _MAX_KEY_LENGTH = 4000, 20_000
# Events repeat short texts, such as statuses and tool names: clean ones are cached.
_MAX_REMEMBERED, _MAX_REMEMBERED_CHARS = 2000, 200
_KEY_START, _KEY_END = "-----BEGIN", "-----END"


def _to_ascii(text: str) -> bytes:
    return text.encode("ascii", "replace")


class _SearchText:
    """A text with the secrets found so far masked, and a copy with one byte per character that is faster to search.

    `spans` are their positions in the original; `flat` has the offsets of `text`.
    """

    __slots__ = ("flat", "original", "spans", "starts", "text")

    def __init__(self, original: str, spans: list[Span]) -> None:
        self.original = original
        self.spans = spans
        self.text, self.starts = _mask_spans(original, spans) if spans else (original, [])
        self.flat = _to_ascii(self.text)

    def with_found(self, found: list[Span]) -> "_SearchText":
        """Return the text with these parts of `text` masked as well."""
        if not found:
            return self
        spans = [(self._origin(start, is_end=False), self._origin(end, is_end=True)) for start, end in found]
        return _SearchText(self.original, merge_spans(sorted([*self.spans, *spans])))

    def _origin(self, at: int, *, is_end: bool) -> int:
        """Return the position in the original; one inside a mask is extended to the edge of its secret."""
        index = bisect_left(self.starts, at) - 1 if is_end else bisect_right(self.starts, at) - 1
        if index < 0:
            return at
        beyond = at - self.starts[index] - len(MASK)
        start, end = self.spans[index]
        return end + beyond if beyond >= 0 else end if is_end else start


def _mask_spans(text: str, spans: list[Span]) -> tuple[str, list[int]]:
    """Return the text with a mask in place of each span, and where the masks start."""
    pieces: list[str] = []
    starts: list[int] = []
    done = length = 0
    for start, end in spans:
        pieces += (text[done:start], MASK)
        starts.append(length + start - done)
        length = starts[-1] + len(MASK)
        done = end
    return "".join((*pieces, text[done:])), starts


def merge_spans(spans: list[Span]) -> list[Span]:
    """Join overlapping spans of a sorted list."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


class Redactor:
    """Masks known values (raw, reversed, base64, hexadecimal, URL-encoded, JSON) and token patterns."""

    def __init__(self, known_values: Iterable[str] = ()) -> None:
        self._raw_values: set[str] = set()
        self._forms: set[str] = set()
        self._values: list[tuple[bytes, str]] = []
        self._values_with_spaces: list[str] = []
        self._clean: set[str] = set()
        self.learn(known_values)

    def learn(self, values: Iterable[str]) -> None:
        """Mask these values as well from now on."""
        new = {value for value in values if len(value) >= MIN_VALUE_LENGTH} - self._raw_values
        if not new:
            return
        self._raw_values |= new
        self._forms |= {form for value in new for form in encoded_forms(value)}
        # Longest first, so that a value that contains another one is masked completely.
        self._values = [(_to_ascii(form), form) for form in sorted(self._forms, key=len, reverse=True)]
        # Passphrases; all other secrets are runs of characters without blanks.
        self._values_with_spaces = [form for form in self._forms if form.strip(_PRINTABLE)]
        # A new set: another thread may be adding clean texts to the old one.
        self._clean = set()

    def redact(self, text: str) -> str:
        """Return the text with every secret masked."""
        clean = self._clean
        if text in clean:
            return text
        found = self._search(text)
        if not found.spans and len(text) <= _MAX_REMEMBERED_CHARS:
            if len(clean) >= _MAX_REMEMBERED:
                clean.clear()
            clean.add(text)
        return found.text

    def find_secrets(self, text: str) -> list[Span]:
        """Return the positions of all secrets, sorted and without overlaps."""
        return self._search(text).spans

    def mask_lines(self, text: str) -> str:
        """Return the text masked line by line: it keeps its number of lines."""
        pieces: list[str] = []
        done = 0
        for start, end in self.find_secrets(text):
            pieces += (text[done:start], "\n".join([MASK] * (text.count("\n", start, end) + 1)))
            done = end
        return "".join((*pieces, text[done:]))

    def _search(self, text: str) -> _SearchText:
        buffer = self._mask_values(_SearchText(text, []))
        buffer = buffer.with_found(_find_tokens(buffer.text, buffer.flat))
        for secret in ANCHORED_PATTERNS:
            # Searching for a fixed text is cheap; a regular expression over a megabyte is not.
            if secret.required_byte in buffer.flat and secret.anchor in buffer.flat:
                buffer = buffer.with_found(_find_anchored(buffer, secret))
        return buffer

    def safe_length(self, text: str) -> int:
        """Return the length up to which an incomplete text cannot end in the middle of a secret."""
        tail = text[-_MAX_TOKEN_LENGTH:]
        end = len(text) - len(tail) + len(tail.rstrip(_PRINTABLE))
        key = text.rfind(_KEY_START, max(0, end - _MAX_KEY_LENGTH))
        if key >= 0 and _KEY_END not in text[key:]:
            end = min(end, key)
        return min((_end_before(value, text, end) for value in self._values_with_spaces), default=end)

    def mask_known(self, text: str) -> str:
        """Return the text with known values masked, but nothing that only looks like a secret."""
        return self._mask_values(_SearchText(text, [])).text

    def _mask_values(self, buffer: _SearchText) -> _SearchText:
        for flat, value in self._values:
            if flat in buffer.flat:
                buffer = buffer.with_found(_find_value(buffer.text, value))
        return buffer

    def redact_chunks(self, text: str) -> Iterator[str]:
        """Yield a long text masked in chunks, each short enough not to block other threads."""
        start = 0
        while start < len(text):
            end = _chunk_end(text, start)
            yield self.redact(text[start:end])
            start = end

    def redact_file(self, path: Path) -> None:
        """Mask a file of any size in place, chunk by chunk."""
        masked = path.with_name(path.name + ".masked")
        with path.open("rb") as source, masked.open("wb") as target:
            masked.chmod(0o600)
            _read_chunks(source.read, lambda text: target.write(self.redact(text).encode("utf-8", "surrogateescape")))
        masked.replace(path)


def _end_before(value: str, text: str, end: int) -> int:
    """Return the last offset up to `end` that is not inside a complete or partial occurrence of a value."""
    partial = next((size for size in range(len(value) - 1, 0, -1) if text.endswith(value[:size])), 0)
    end = min(end, len(text) - partial)
    inside = text.find(value, max(0, end - len(value) + 1))
    return min(end, inside) if inside >= 0 else end


@cache
def _compiled_patterns() -> tuple[dict[str, re.Pattern[str]], re.Pattern[str]]:
    """Return the token expressions by their first three characters, and the one for prefixed runs."""
    by_prefix: dict[str, list[str]] = {}
    for pattern in TOKEN_PATTERNS:
        for prefix in pattern.prefixes:
            by_prefix.setdefault(prefix, []).append(pattern.regex)
    tokens = {prefix: re.compile("|".join(regexes)) for prefix, regexes in by_prefix.items()}
    return tokens, re.compile("|".join(PREFIXED_PATTERNS))


def _find_value(text: str, value: str) -> list[Span]:
    found: list[Span] = []
    at = text.find(value)
    while at >= 0:
        found.append((at, at + len(value)))
        at = text.find(value, at + len(value))
    return found


def _find_tokens(text: str, flat: bytes) -> list[Span]:
    runs = b" " + flat.translate(_TOKEN_TABLE)
    start = runs.find(_TOKEN_START)
    found: list[Span] = []
    if start < 0:
        return found
    find, first_bytes, prefixes, preceding = runs.find, _FIRST_BYTES, _PREFIXES, _PRECEDING_BYTES
    while start >= 0:
        # Most runs are names and hashes, so check their first bytes before anything else.
        byte = flat[start]
        is_candidate = byte in first_bytes and (byte in _DASHES or flat[start : start + 3] in prefixes)
        if is_candidate or flat[start - 1] in preceding:
            span = _find_token(text, start)
            if span is not None:
                found.append(span)
                start = max(start, span[1] - MIN_TOKEN_LENGTH)
        start = find(_TOKEN_START, start + MIN_TOKEN_LENGTH)
    return found


def _find_token(text: str, start: int) -> Span | None:
    """Return the span of a secret that starts with this run, or a few characters into it."""
    tokens, prefixed = _compiled_patterns()
    before = text[start - 1 : start]
    match = prefixed.match(text, start) if before in (".", ":") else None
    if match is not None:
        return match.span()
    # `\n`, `%3D` and dashes in front of a token belong to the text around it.
    at = start + {"\\": 1, "%": 2}.get(before, 0)
    while text[at : at + 1] in ("-", "_"):
        at += 1
    for offset in (start, at):
        regex = tokens.get(text[offset : offset + 3])
        if regex is not None and (match := regex.match(text, offset)) is not None:
            return match.span()
    return None


def _find_anchored(buffer: _SearchText, secret: AnchoredPattern) -> list[Span]:
    # `re` caches compiled expressions.
    regex = re.compile(secret.regex)
    text, find = buffer.text, buffer.flat.find
    found: list[Span] = []
    done, at = 0, find(secret.anchor)
    while at >= 0:
        match = regex.match(text, at)
        if match is not None:
            start, done = match.span(regex.groups)
            found.append((start, done))
        at = find(secret.anchor, max(done, at + 1))
    return found


def _read_chunks(read: Callable[[int], bytes], consume: Callable[[str], object]) -> None:
    """Pass on complete lines, and never the start of a private key without its end."""
    rest = ""
    while data := read(_FILE_CHUNK):
        text = rest + data.decode("utf-8", "surrogateescape")
        cut = text.rfind("\n") + 1 or len(text)
        key = text.rfind(_KEY_START, max(0, cut - _MAX_KEY_LENGTH), cut)
        if key > 0 and _KEY_END not in text[key:cut]:
            cut = key
        consume(text[:cut])
        rest = text[cut:]
    consume(rest)


def _chunk_end(text: str, start: int) -> int:
    """Return where to cut: after a complete line if possible, and never inside a private key."""
    end = start + _TEXT_CHUNK
    if end >= len(text):
        return len(text)
    end = text.rfind("\n", start, end) + 1 or end
    key = text.rfind(_KEY_START, max(start, end - _MAX_KEY_LENGTH), end)
    return key if key > start and _KEY_END not in text[key:end] else end


def encoded_forms(value: str) -> set[str]:
    """Return a value as it is, reversed, and in the usual encodings."""
    if len(value) < MIN_VALUE_LENGTH:
        return set()
    quoted = {urllib.parse.quote(value, safe=""), urllib.parse.quote_plus(value), urllib.parse.quote(value)}
    # As it appears inside JSON text.
    quoted |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    raw = value.encode("utf-8", "surrogateescape")
    return {value, value[::-1], *quoted, raw.hex(), raw.hex().upper(), *_base64_forms(raw)}


def _base64_forms(value: bytes) -> set[str]:
    """Return the invariant part of the encoded value for each of its three possible alignments."""
    forms: set[str] = set()
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * before + value).decode().rstrip("=")
            head = (0, 2, 3)[before]
            tail = len(text) - (1 if (before + len(value)) % 3 else 0)
            if tail - head >= _MIN_ENCODED_LENGTH:
                forms.add(text[head:tail])
    return forms
