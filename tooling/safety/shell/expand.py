"""Expansions that need no shell: escapes, braces, field splitting, patterns cut from values."""

import fnmatch
import re
from itertools import product

_ANSI = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\\n])')
_RANGE = re.compile(r"(-?\d{1,6}|[A-Za-z])\.\.(-?\d{1,6}|[A-Za-z])(?:\.\.-?\d{1,3})?")
MAX_FIELDS = 2000


class TooManyFields(Exception):
    """A word would become more fields than anybody writes."""


def unescape(text: str) -> str:
    """Return an unquoted word without its backslashes."""
    return _ESCAPED.sub(lambda found: "" if found[1] == "\n" else found[1], text)


def unescape_double_quoted(text: str) -> str:
    """Return double-quoted text without the backslashes that mean something there."""
    return _ESCAPED_IN_QUOTES.sub(lambda found: "" if found[1] == "\n" else found[1], text)


def decode_ansi_c(text: str) -> str:
    """Return what `$'text'` stands for."""

    def one(found: "re.Match[str]") -> str:
        x, u, long_u, octal, control, other = found.groups()
        if x or u or long_u:
            number = int(x or u or long_u, 16)
            return chr(number) if number <= 0x10FFFF else "?"
        if octal:
            return chr(int(octal, 8) & 0xFF)
        if control:
            return chr(ord(control) & 0x1F)
        return _NAMED.get(other, other)

    return _ANSI.sub(one, text).partition("\0")[0]


def expand_braces(text: str) -> list[str]:
    """Return what brace expansion makes of a word."""
    start = text.find("{")
    while start >= 0:
        parts, end = _split_braces(text, start)
        if parts:
            heads, tails = text[:start], expand_braces(text[end:])
            middles = [made for part in parts for made in expand_braces(part)]
            if len(middles) * len(tails) > MAX_FIELDS:
                raise TooManyFields
            return [f"{heads}{middle}{tail}" for middle, tail in product(middles, tails)]
        start = text.find("{", start + 1)
    return [text]


def _split_braces(text: str, start: int) -> tuple[list[str], int]:
    depth, parts, begin = 0, [], start + 1
    for at in range(start, len(text)):
        char = text[at]
        if char == "{":
            depth += 1
            if depth > 20:
                raise TooManyFields
        elif char == "," and depth == 1:
            parts.append(text[begin:at])
            begin = at + 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                inner = text[start + 1 : at]
                return ([*parts, text[begin:at]] if parts else _expand_range(inner)), at + 1
    return [], start


def _expand_range(inner: str) -> list[str]:
    found = _RANGE.fullmatch(inner)
    if not found:
        return []
    first, last = found[1], found[2]
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit():
        low, high = sorted((int(first), int(last)))
        return [first, last] if high - low > 64 else [str(number) for number in range(low, high + 1)]
    low, high = sorted((ord(first[0]), ord(last[0])))
    return [chr(number) for number in range(low, high + 1)]


def strip_pattern(value: str, operator: str, pattern: str) -> str | None:
    """Return a value without what `#`, `##`, `%` or `%%` takes away; None when that is not certain."""
    if operator not in ("#", "##", "%", "%%") or len(value) > 4096:
        return None
    regex = re.compile(fnmatch.translate(pattern), re.DOTALL)
    lengths = range(len(value) + 1) if len(operator) == 1 else range(len(value), -1, -1)
    for length in lengths:
        if operator[0] == "#" and regex.match(value[:length]):
            return value[length:]
        if operator[0] == "%" and regex.match(value[len(value) - length :]):
            return value[: len(value) - length]
    return value


def replace_pattern(value: str, operator: str, pattern: str, by: str) -> str | None:
    """Return a value with what `/` or `//` replaces; None when that is not certain."""
    if any(char in pattern for char in "*?[#%\\") or not pattern:
        return None
    return value.replace(pattern, by) if operator == "//" else value.replace(pattern, by, 1)


def substring(value: str, numbers: list[str]) -> str | None:
    """Return the part of a value that `${value:from:length}` names; None when that is not certain."""
    try:
        first, *rest = map(int, numbers)
    except ValueError:
        return None
    tail = value[first:]
    if not rest:
        return tail
    return tail[: rest[0]]
