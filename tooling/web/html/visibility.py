"""Detect elements that a browser does not show: zero size, off-screen, transparent, or hidden by style."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern

MAX_STYLE_CHARS = 20_000
_CSS_COMMENT = r"/\*.*?(?:\*/|\Z)"
_ESCAPE = r"\\(?:([0-9a-f]{1,6})\s?|(.))"
_DECLARATION = lazy_pattern(
    r"(?<![a-z-])([a-z-]++)\s*+:((?:[^;\"'(]|\"[^\"]*+\"|'[^']*+'|\((?:[^()]|\([^()]*+\))*+\))*+)"
)
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?"
_LENGTH = lazy_pattern(rf"({_NUMBER})([a-z%]*)")
_COLOR_NAMES = {"white": (255.0, 255.0, 255.0), "black": (0.0, 0.0, 0.0)}
_PIXELS = {"": 1.0, "px": 1.0, "pt": 1.33, "em": 16.0, "rem": 16.0, "ch": 8.0, "cm": 38.0, "in": 96.0}
_OTHER_UNITS = 10.0


def parse_declarations(style: str) -> dict[str, str]:
    """Return CSS declarations by property, in lower case; the last one wins, and !important over all others."""
    plain = re.sub(_CSS_COMMENT, "", style[:MAX_STYLE_CHARS].lower(), flags=re.DOTALL)
    if "\\" in plain:
        plain = re.sub(_ESCAPE, _unescape, plain, flags=re.DOTALL)
    normal: dict[str, str] = {}
    important: dict[str, str] = {}
    for match in _DECLARATION.finditer(plain):
        value, mark, _ = match[2].partition("!")
        (important if mark else normal)[match[1]] = " ".join(value.split())
    return normal | important


def numbers(text: str) -> list[float]:
    """Return all numbers in a value, ignoring units."""
    return [float(number) for number in re.findall(_NUMBER, text)]


def lengths(text: str, *, percent: float = _OTHER_UNITS) -> Iterator[float]:
    """Yield all lengths in a value as approximate pixels; `percent` is the size of one percent."""
    for number, unit in _LENGTH.findall(text):
        yield float(number) * (percent if unit == "%" else _PIXELS.get(unit, _OTHER_UNITS))


def font_size(values: dict[str, str]) -> float | None:
    """Return the font size in pixels, if the style sets it."""
    if "font-size" in values:
        return next(lengths(values["font-size"]), None)
    match = re.search(rf"(?:^|\s)({_NUMBER}(?:[a-z]+|%)|0)(?=[/\s])", values.get("font", ""))
    return next(lengths(match[1]), None) if match else None


def opacity(text: str) -> float | None:
    """Return an opacity from 0 to 1, or None if the text is not one."""
    match = _LENGTH.match(text)
    return float(match[1]) / (100 if match[2] == "%" else 1) if match else None


def alpha(color: str) -> float:
    """Return the alpha of a color; 1 for unknown notations."""
    if color == "transparent":
        return 0.0
    if digits := re.fullmatch(r"#(?:[0-9a-f]{3}([0-9a-f])|[0-9a-f]{6}([0-9a-f]{2}))", color):
        return int(digits[1] * 2 if digits[1] else digits[2], 16) / 255
    arguments = re.fullmatch(r"(?:rgb|hsl)a?\(([^)]*)\)", color)
    parts = re.split(r"[\s,/]+", arguments[1].strip()) if arguments else []
    value = opacity(parts[3]) if len(parts) == 4 else None
    return 1.0 if value is None else value


def rgb(color: str) -> tuple[float, ...] | None:
    """Return red, green and blue, or None for other notations."""
    if digits := re.fullmatch(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", color):
        text = digits[1] if len(digits[1]) > 4 else "".join(digit * 2 for digit in digits[1])
        return tuple(float(int(text[at : at + 2], 16)) for at in (0, 2, 4))
    if arguments := re.fullmatch(r"rgba?\(([^)]*)\)", color):
        channels = numbers(arguments[1])[:3]
        return tuple(channels) if len(channels) == 3 and "%" not in arguments[1] else None
    return _COLOR_NAMES.get(color)


def _unescape(match: re.Match[str]) -> str:
    if not match[1]:
        return match[2] or ""
    code = int(match[1], 16)
    return chr(code).lower() if 0 < code < 0x110000 else ""


MAX_CSS_CHARS = 200_000
_OFF_SCREEN_PX = -400.0
_FAR_OFF_PX = 5000.0
_INVISIBLE_OPACITY = 0.05
_MAX_HIDDEN_SIZE_PX = 1.0
_MAX_HIDDEN_FONT_PX = 2.0
_INVISIBLE_SCALE = 0.05
_SAME_COLOR_DISTANCE = 8.0
_INHERITED = ("inherit", "initial", "unset", "currentcolor")

# A tag, class or id, or a tag with one of these; matching longer selectors would need the tree.
_SELECTOR = r"([a-z][a-z0-9]*)?(?:([.#])(-?[_a-z][\w-]*))?"
_EDGES = lazy_pattern("[{};]")
_OFFSETS = ("left", "right", "top", "bottom", "inset", "text-indent", "margin", "margin-left", "margin-top")


@dataclass(slots=True)
class StyleSheet:
    """The simple selectors of a page's style sheets that hide the matching elements."""

    hidden_selectors: set[tuple[str, str, str]] = field(default_factory=set)

    def parse(self, css: str) -> None:
        """Add the rules of a style element; rules inside @media and other at-rules are ignored."""
        css = _strip_at_rules(re.sub(_CSS_COMMENT, "", css[:MAX_CSS_CHARS], flags=re.DOTALL))
        for rule in css.split("}"):
            selectors, brace, style = rule.rpartition("{")
            if not brace or not hides(style):
                continue
            for selector in selectors.split(","):
                if simple := re.fullmatch(_SELECTOR, selector.strip(), re.IGNORECASE):
                    self.hidden_selectors.add(((simple[1] or "").lower(), simple[2] or "", simple[3] or ""))

    def hides(self, tag: str, attributes: Mapping[str, str]) -> bool:
        """Return whether a rule hides an element."""
        if not self.hidden_selectors:
            return False
        keys = [("", ""), *((".", name) for name in attributes.get("class", "").split())]
        keys += [("#", attributes["id"])] if attributes.get("id") else []
        return any(
            (name, kind, value) in self.hidden_selectors for kind, value in keys for name in (tag, "") if name or kind
        )


def is_hidden(tag: str, attributes: Mapping[str, str], sheet: StyleSheet | None = None) -> bool:
    """Return whether an element itself is hidden; its ancestors are not checked."""
    if "hidden" in attributes or (tag == "input" and attributes.get("type", "").lower() == "hidden"):
        return True
    style = attributes.get("style", "")
    return bool(style and hides(style)) or (sheet is not None and sheet.hides(tag, attributes))


def hides(style: str) -> bool:
    """Return whether the declarations of a style attribute make an element invisible."""
    values = parse_declarations(style)
    if values.get("display") == "none" or values.get("visibility") in ("hidden", "collapse"):
        return True
    if values.get("content-visibility") == "hidden" or _is_transparent(values):
        return True
    size = font_size(values)
    if size is not None and size <= _MAX_HIDDEN_FONT_PX:
        return True
    return _is_off_screen(values) or _is_clipped(values) or _is_shrunk(values) or _has_no_size(values)


def _is_transparent(values: Mapping[str, str]) -> bool:
    filtered = re.search(r"opacity\(([^)]*)\)", values.get("filter", ""))
    opacities = [opacity(text) for text in (values.get("opacity", ""), filtered[1].strip() if filtered else "")]
    color = values.get("-webkit-text-fill-color") or values.get("color", "")
    if alpha(color) <= _INVISIBLE_OPACITY or any(
        value is not None and value <= _INVISIBLE_OPACITY for value in opacities
    ):
        return True
    background = values.get("background-color") or values.get("background", "")
    background_rgb, color_rgb = rgb(background), rgb(color)
    if background_rgb is None or color_rgb is None:
        return bool(color) and color == background and color not in _INHERITED
    return all(abs(a - b) <= _SAME_COLOR_DISTANCE for a, b in zip(background_rgb, color_rgb, strict=True))


def _is_off_screen(values: Mapping[str, str]) -> bool:
    translations = re.findall(r"translate(?:[xyz]|3d)?\(([^)]*)\)", values.get("transform", ""))
    # A small percentage, because translate(-50%) is how elements are centered.
    offsets = [px for text in (*translations, values.get("translate", "")) for px in lengths(text, percent=1.0)]
    offsets += [px for name in _OFFSETS if name in values for px in lengths(values[name])]
    return any(px <= _OFF_SCREEN_PX or px >= _FAR_OFF_PX for px in offsets)


def _is_clipped(values: Mapping[str, str]) -> bool:
    clip = values.get("clip", "")
    if clip.startswith("rect") and all(abs(edge) <= 1 for edge in numbers(clip)):
        return True
    path = values.get("clip-path", "")
    if path.startswith(("circle(", "ellipse(")):
        return next(iter(numbers(path)), 1.0) == 0
    if path.startswith("polygon("):
        return set(numbers(path)) == {0.0}
    if not path.startswith("inset(") or "%" not in path:
        return False
    edges = numbers(path.partition("round")[0])
    # Top, right, bottom, left; an omitted edge equals the opposite one.
    while 0 < len(edges) < 4:
        edges.append(edges[max(0, len(edges) - 2)])
    return len(edges) == 4 and (edges[0] + edges[2] >= 100 or edges[1] + edges[3] >= 100)


def _is_shrunk(values: Mapping[str, str]) -> bool:
    transform = values.get("transform", "")
    scales = [*re.findall(r"scale(?:[xy]|3d)?\(([^)]*)\)", transform), values.get("scale", ""), values.get("zoom", "")]
    if any(factors and min(map(abs, factors[:2])) <= _INVISIBLE_SCALE for factors in map(numbers, scales)):
        return True
    edge_on = re.search(r"rotate[xy]\(\s*-?(?:90|270)deg", transform)
    matrix = re.search(r"matrix\(([^)]*)\)", transform)
    return bool(edge_on) or (matrix is not None and not any(numbers(matrix[1])[:4]))


def _has_no_size(values: Mapping[str, str]) -> bool:
    small = [
        0 <= next(lengths(size), 16.0) <= _MAX_HIDDEN_SIZE_PX
        for name in ("width", "height")
        if (size := values.get(name) or values.get(f"max-{name}"))
    ]
    overflows = " ".join(values.get(name, "") for name in ("overflow", "overflow-x", "overflow-y")).split()
    is_clipped = "hidden" in overflows or "clip" in overflows
    if is_clipped and values.get("line-height") in ("0", "0px"):
        return True
    return (len(small) == 2 and all(small)) or (is_clipped and any(small))


def _strip_at_rules(css: str) -> str:
    """Remove @media, @supports and other at-rules: whether they apply is unknown."""
    parts: list[str] = []
    start = 0
    while (at := css.find("@", start)) >= 0:
        parts.append(css[start:at])
        start = _end_of_block(css, at)
    return "".join([*parts, css[start:]])


def _end_of_block(css: str, at: int) -> int:
    depth = 0
    for mark in _EDGES.finditer(css, at):
        end = mark.end()
        depth += {"{": 1, "}": -1, ";": 0}[mark[0]]
        if depth <= 0:
            return end
    return len(css)
