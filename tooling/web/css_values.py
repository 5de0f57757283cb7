"""Declarations of a style and the values in them, read as far as it takes to see what hides a text."""

import re
from collections.abc import Iterator

MOST_STYLE_CHARS = 20_000
_COMMENT = r"/\*.*?(?:\*/|\Z)"
_ESCAPE = r"\\(?:([0-9a-f]{1,6})\s?|(.))"
_DECLARATION = re.compile(
    r"(?<![a-z-])([a-z-]++)\s*+:((?:[^;\"'(]|\"[^\"]*+\"|'[^']*+'|\((?:[^()]|\([^()]*+\))*+\))*+)"
)
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?"
_LENGTH = re.compile(rf"({_NUMBER})([a-z%]*)")
_NAMES = {"white": (255.0, 255.0, 255.0), "black": (0.0, 0.0, 0.0)}
_PIXELS = {"": 1.0, "px": 1.0, "pt": 1.33, "em": 16.0, "rem": 16.0, "ch": 8.0, "cm": 38.0, "in": 96.0}
_OTHER_UNITS = 10.0


def declarations(style: str) -> dict[str, str]:
    """Return the values by name, in small letters; the last one counts, and what is important before all others."""
    plain = re.sub(_COMMENT, "", style[:MOST_STYLE_CHARS].lower(), flags=re.DOTALL)
    if "\\" in plain:
        plain = re.sub(_ESCAPE, _unescaped, plain, flags=re.DOTALL)
    usual: dict[str, str] = {}
    important: dict[str, str] = {}
    for found in _DECLARATION.finditer(plain):
        value, mark, _ = found[2].partition("!")
        (important if mark else usual)[found[1]] = " ".join(value.split())
    return usual | important


def numbers(text: str) -> list[float]:
    """Return all numbers of a value, whatever they measure."""
    return [float(number) for number in re.findall(_NUMBER, text)]


def lengths(text: str, *, percent: float = _OTHER_UNITS) -> Iterator[float]:
    """Yield all lengths of a value in pixels, roughly; `percent` is what one of a hundred parts counts."""
    for number, unit in _LENGTH.findall(text):
        yield float(number) * (percent if unit == "%" else _PIXELS.get(unit, _OTHER_UNITS))


def font_size(values: dict[str, str]) -> float | None:
    """Return the size of the letters in pixels, if a style says it."""
    if "font-size" in values:
        return next(lengths(values["font-size"]), None)
    found = re.search(rf"(?:^|\s)({_NUMBER}(?:[a-z]+|%)|0)(?=[/\s])", values.get("font", ""))
    return next(lengths(found[1]), None) if found else None


def opacity(text: str) -> float | None:
    """Return an opacity between nothing and one, if this is any."""
    found = _LENGTH.match(text)
    return float(found[1]) / (100 if found[2] == "%" else 1) if found else None


def alpha(colour: str) -> float:
    """Return how much of a colour is seen; one for colours that are not understood."""
    if colour == "transparent":
        return 0.0
    if digits := re.fullmatch(r"#(?:[0-9a-f]{3}([0-9a-f])|[0-9a-f]{6}([0-9a-f]{2}))", colour):
        return int(digits[1] * 2 if digits[1] else digits[2], 16) / 255
    inside = re.fullmatch(r"(?:rgb|hsl)a?\(([^)]*)\)", colour)
    parts = re.split(r"[\s,/]+", inside[1].strip()) if inside else []
    found = opacity(parts[3]) if len(parts) == 4 else None
    return 1.0 if found is None else found


def rgb(colour: str) -> tuple[float, ...] | None:
    """Return red, green and blue, or None for a colour that is not written in them."""
    if digits := re.fullmatch(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", colour):
        text = digits[1] if len(digits[1]) > 4 else "".join(digit * 2 for digit in digits[1])
        return tuple(float(int(text[at : at + 2], 16)) for at in (0, 2, 4))
    if inside := re.fullmatch(r"rgba?\(([^)]*)\)", colour):
        found = numbers(inside[1])[:3]
        return tuple(found) if len(found) == 3 and "%" not in inside[1] else None
    return _NAMES.get(colour)


def _unescaped(found: re.Match[str]) -> str:
    if not found[1]:
        return found[2] or ""
    code = int(found[1], 16)
    return chr(code).lower() if 0 < code < 0x110000 else ""
