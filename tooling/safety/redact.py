"""Masks secrets in text: the exact values we know of, and what looks like a token of a known maker."""

import base64
import re
import urllib.parse
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from tooling.safety.secret_patterns import ANCHORED_SECRETS, RUN_LENGTH, RUN_SECRETS, AnchoredSecret

MASK = "[REDACTED]"
# Shorter "secrets" are words; masking them would mangle ordinary text.
MIN_VALUE_LENGTH = 8
_FILE_PIECE = 1_000_000
_TOKEN_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
# Token characters become "a", all others a blank: long runs are then found at the speed of a plain search.
_RUNS = bytes(97 if byte in _TOKEN_BYTES else 32 for byte in range(256))
_LONG_RUN = b"a" * RUN_LENGTH
_KEY_BEGIN, _KEY_END = "-----BEGIN", "-----END"


class Redactor:
    """Replaces known values (raw, base64, url-encoded) and anchored token patterns by a mask."""

    def __init__(self, known_values: Iterable[str] = ()) -> None:
        forms = {form for value in known_values for form in _forms(value)}
        # Longest first, so that a value that contains another one disappears whole.
        self._values = sorted(forms, key=len, reverse=True)

    def redact(self, text: str) -> str:
        """Return the text with every secret masked."""
        for value in self._values:
            if value in text:
                text = text.replace(value, MASK)
        text = _mask_runs(text)
        for secret in ANCHORED_SECRETS:
            # Searching for a fixed piece of text is cheap; a regular expression over a megabyte is not.
            if secret.anchor in text:
                text = _mask_anchored(text, secret)
        return text

    def redact_file(self, path: Path) -> None:
        """Mask a file in place, piece by piece, so that its size does not matter."""
        masked = path.with_name(path.name + ".masked")
        with path.open("rb") as source, masked.open("wb") as target:
            masked.chmod(0o600)
            _in_pieces(source.read, lambda text: target.write(self.redact(text).encode("utf-8", "surrogateescape")))
        masked.replace(path)


@cache
def _run_secret() -> re.Pattern[str]:
    return re.compile("|".join(RUN_SECRETS))


def _mask_runs(text: str) -> str:
    runs = text.encode("ascii", "replace").translate(_RUNS)
    start = runs.find(_LONG_RUN)
    if start < 0:
        return text
    match = _run_secret().match
    pieces: list[str] = []
    done = 0
    while start >= 0:
        found = match(text, start)
        if found is not None:
            pieces += (text[done:start], MASK)
            done = found.end()
        end = runs.find(b" ", max(done, start + RUN_LENGTH))
        start = -1 if end < 0 else runs.find(_LONG_RUN, end)
    return "".join((*pieces, text[done:])) if pieces else text


def _mask_anchored(text: str, secret: AnchoredSecret) -> str:
    # The module's own cache of expressions keeps this from compiling twice.
    regex = re.compile(secret.regex)
    pieces: list[str] = []
    done, at = 0, text.find(secret.anchor)
    while at >= 0:
        found = regex.match(text, at)
        if found is not None:
            start, end = found.span(regex.groups)
            pieces += (text[done:start], MASK)
            done = end
        at = text.find(secret.anchor, max(done, at + 1))
    return "".join((*pieces, text[done:])) if pieces else text


def _in_pieces(read: Callable[[int], bytes], take: Callable[[str], object]) -> None:
    """Hand over whole lines, and never the beginning of a private key without its end."""
    rest = ""
    while data := read(_FILE_PIECE):
        text = rest + data.decode("utf-8", "surrogateescape")
        cut = text.rfind("\n") + 1 or len(text)
        key = text.rfind(_KEY_BEGIN, max(0, cut - 20_000), cut)
        if key > 0 and _KEY_END not in text[key:cut]:
            cut = key
        take(text[:cut])
        rest = text[cut:]
    take(rest)


def _forms(value: str) -> set[str]:
    if len(value) < MIN_VALUE_LENGTH:
        return set()
    quoted = {urllib.parse.quote(value, safe=""), urllib.parse.quote_plus(value), urllib.parse.quote(value)}
    return {value, *quoted, *_base64_forms(value.encode())}


def _base64_forms(value: bytes) -> set[str]:
    """Return what stays the same of the encoded value at each of the three places it can start at."""
    forms: set[str] = set()
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * before + value).decode().rstrip("=")
            head = (0, 2, 3)[before]
            tail = len(text) - (1 if (before + len(value)) % 3 else 0)
            if tail - head >= MIN_VALUE_LENGTH:
                forms.add(text[head:tail])
    return forms
