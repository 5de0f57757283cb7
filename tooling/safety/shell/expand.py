"""Expansions that need no shell state: escapes, braces, and pattern operations on values."""

import fnmatch
import re
from itertools import product

from tooling.contract.lazy_pattern import lazy_pattern

_ANSI = lazy_pattern(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ESCAPED = lazy_pattern(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = lazy_pattern(r'\\([$`"\\\n])')
_RANGE = lazy_pattern(r"(-?\d{1,6}|[A-Za-z])\.\.(-?\d{1,6}|[A-Za-z])(?:\.\.-?\d{1,3})?")
MAX_FIELDS = 2000


class TooManyFields(Exception):
    """A word expands to too many fields."""


def unescape(text: str) -> str:
    """Remove the backslashes of an unquoted word."""
    return _ESCAPED.sub(lambda match: "" if match[1] == "\n" else match[1], text)


def unescape_double_quoted(text: str) -> str:
    """Remove the backslashes that are escapes inside double quotes."""
    return _ESCAPED_IN_QUOTES.sub(lambda match: "" if match[1] == "\n" else match[1], text)


def decode_ansi_c(text: str) -> str:
    """Return the value of `$'text'`."""

    def decode(match: "re.Match[str]") -> str:
        x, u, long_u, octal, control, other = match.groups()
        if x or u or long_u:
            number = int(x or u or long_u, 16)
            return chr(number) if number <= 0x10FFFF else "?"
        if octal:
            return chr(int(octal, 8) & 0xFF)
        if control:
            return chr(ord(control) & 0x1F)
        return _NAMED.get(other, other)

    return _ANSI.sub(decode, text).partition("\0")[0]


def expand_braces(text: str) -> list[str]:
    """Return the words that brace expansion produces."""
    start = text.find("{")
    while start >= 0:
        parts, end = _split_braces(text, start)
        if parts:
            head, tails = text[:start], expand_braces(text[end:])
            middles = [middle for part in parts for middle in expand_braces(part)]
            if len(middles) * len(tails) > MAX_FIELDS:
                raise TooManyFields
            return [f"{head}{middle}{tail}" for middle, tail in product(middles, tails)]
        start = text.find("{", start + 1)
    return [text]


def _split_braces(text: str, start: int) -> tuple[list[str], int]:
    depth, parts, part_start = 0, [], start + 1
    for at in range(start, len(text)):
        char = text[at]
        if char == "{":
            depth += 1
            if depth > 20:
                raise TooManyFields
        elif char == "," and depth == 1:
            parts.append(text[part_start:at])
            part_start = at + 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                inner = text[start + 1 : at]
                return ([*parts, text[part_start:at]] if parts else _expand_range(inner)), at + 1
    return [], start


def _expand_range(inner: str) -> list[str]:
    match = _RANGE.fullmatch(inner)
    if not match:
        return []
    first, last = match[1], match[2]
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit():
        low, high = sorted((int(first), int(last)))
        return [first, last] if high - low > 64 else [str(number) for number in range(low, high + 1)]
    low, high = sorted((ord(first[0]), ord(last[0])))
    return [chr(number) for number in range(low, high + 1)]


def strip_pattern(value: str, operator: str, pattern: str) -> str | None:
    """Apply `#`, `##`, `%` or `%%` to a value; return None if the result is uncertain."""
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


def replace_pattern(value: str, operator: str, pattern: str, replacement: str) -> str | None:
    """Apply `/` or `//` to a value; return None if the result is uncertain."""
    if any(char in pattern for char in "*?[#%\\") or not pattern:
        return None
    return value.replace(pattern, replacement, -1 if operator == "//" else 1)


def substring(value: str, numbers: list[str]) -> str | None:
    """Return the value of `${value:offset:length}`, or None if it is uncertain."""
    try:
        first, *rest = map(int, numbers)
    except ValueError:
        return None
    tail = value[first:]
    if not rest:
        return tail
    return tail[: rest[0]]
