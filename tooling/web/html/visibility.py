"""What a browser would not show: text of no size, off the screen, transparent or switched off."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from tooling.contract.fast_dataclass import dataclass

MAX_STYLE_CHARS = 20_000
_CSS_COMMENT = r"/\*.*?(?:\*/|\Z)"
_ESCAPE = r"\\(?:([0-9a-f]{1,6})\s?|(.))"
_DECLARATION = re.compile(
    r"(?<![a-z-])([a-z-]++)\s*+:((?:[^;\"'(]|\"[^\"]*+\"|'[^']*+'|\((?:[^()]|\([^()]*+\))*+\))*+)"
)
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?"
_LENGTH = re.compile(rf"({_NUMBER})([a-z%]*)")
_NAMES = {"white": (255.0, 255.0, 255.0), "black": (0.0, 0.0, 0.0)}
_PIXELS = {"": 1.0, "px": 1.0, "pt": 1.33, "em": 16.0, "rem": 16.0, "ch": 8.0, "cm": 38.0, "in": 96.0}
_OTHER_UNITS = 10.0


def parse_declarations(style: str) -> dict[str, str]:
    """Return the values by name, in small letters; the last one counts, and what is important before all others."""
    plain = re.sub(_CSS_COMMENT, "", style[:MAX_STYLE_CHARS].lower(), flags=re.DOTALL)
    if "\\" in plain:
        plain = re.sub(_ESCAPE, _unescape, plain, flags=re.DOTALL)
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


def _unescape(found: re.Match[str]) -> str:
    if not found[1]:
        return found[2] or ""
    code = int(found[1], 16)
    return chr(code).lower() if 0 < code < 0x110000 else ""


MAX_CSS_CHARS = 200_000
_OFF_SCREEN_PX = -400.0
_FAR_OFF_PX = 5000.0
_INVISIBLE = 0.05
_SMALLEST_SIZE_PX = 1.0
_SMALLEST_FONT_PX = 2.0
_TINY = 0.05
_SAME_COLOUR = 8.0
_INHERITED = ("inherit", "initial", "unset", "currentcolor")

_COMMENT = r"/\*.*?(?:\*/|\Z)"
# The name of a tag, a class, an id, or a tag with one of these; longer selectors need a whole page to be understood.
_SELECTOR = r"([a-z][a-z0-9]*)?(?:([.#])(-?[_a-z][\w-]*))?"
_EDGES = re.compile("[{};]")
_OFFSETS = ("left", "right", "top", "bottom", "inset", "text-indent", "margin", "margin-left", "margin-top")


@dataclass(slots=True)
class StyleSheet:
    """The simple selectors of a page's own styles that hide what they match."""

    hidden_selectors: set[tuple[str, str, str]] = field(default_factory=set)

    def parse(self, css: str) -> None:
        """Take in the text of a style element; what stands inside @media and the like does not count."""
        css = _strip_at_rules(re.sub(_COMMENT, "", css[:MAX_CSS_CHARS], flags=re.DOTALL))
        for rule in css.split("}"):
            selectors, brace, style = rule.rpartition("{")
            if not brace or not hides(style):
                continue
            for selector in selectors.split(","):
                if simple := re.fullmatch(_SELECTOR, selector.strip(), re.IGNORECASE):
                    self.hidden_selectors.add(((simple[1] or "").lower(), simple[2] or "", simple[3] or ""))

    def hides(self, tag: str, attributes: Mapping[str, str]) -> bool:
        """Say whether a rule hides an element."""
        if not self.hidden_selectors:
            return False
        marks = [("", ""), *((".", name) for name in attributes.get("class", "").split())]
        marks += [("#", attributes["id"])] if attributes.get("id") else []
        return any(
            (name, kind, mark) in self.hidden_selectors for kind, mark in marks for name in (tag, "") if name or kind
        )


def is_hidden(tag: str, attributes: Mapping[str, str], sheet: StyleSheet | None = None) -> bool:
    """Say whether an element is hidden, by itself: what is inside a hidden one has to be left out as well."""
    if "hidden" in attributes or (tag == "input" and attributes.get("type", "").lower() == "hidden"):
        return True
    style = attributes.get("style", "")
    return bool(style and hides(style)) or (sheet is not None and sheet.hides(tag, attributes))


def hides(style: str) -> bool:
    """Say whether the declarations of a style leave nothing to see."""
    values = parse_declarations(style)
    if values.get("display") == "none" or values.get("visibility") in ("hidden", "collapse"):
        return True
    if values.get("content-visibility") == "hidden" or _is_transparent(values):
        return True
    size = font_size(values)
    if size is not None and size <= _SMALLEST_FONT_PX:
        return True
    return _is_off_screen(values) or _is_clipped(values) or _is_shrunk(values) or _has_no_size(values)


def _is_transparent(values: Mapping[str, str]) -> bool:
    filtered = re.search(r"opacity\(([^)]*)\)", values.get("filter", ""))
    seen = [opacity(text) for text in (values.get("opacity", ""), filtered[1].strip() if filtered else "")]
    ink = values.get("-webkit-text-fill-color") or values.get("color", "")
    if alpha(ink) <= _INVISIBLE or any(share is not None and share <= _INVISIBLE for share in seen):
        return True
    paper = values.get("background-color") or values.get("background", "")
    there, here = rgb(paper), rgb(ink)
    if there is None or here is None:
        return bool(ink) and ink == paper and ink not in _INHERITED
    return all(abs(one - other) <= _SAME_COLOUR for one, other in zip(there, here, strict=True))


def _is_off_screen(values: Mapping[str, str]) -> bool:
    """Say whether a text stands where no screen reaches."""
    moved = re.findall(r"translate(?:[xyz]|3d)?\(([^)]*)\)", values.get("transform", ""))
    # Half of its own size to the left is how things are centred.
    steps = [step for text in (*moved, values.get("translate", "")) for step in lengths(text, percent=1.0)]
    steps += [step for name in _OFFSETS if name in values for step in lengths(values[name])]
    return any(step <= _OFF_SCREEN_PX or step >= _FAR_OFF_PX for step in steps)


def _is_clipped(values: Mapping[str, str]) -> bool:
    box = values.get("clip", "")
    if box.startswith("rect") and all(abs(edge) <= 1 for edge in numbers(box)):
        return True
    path = values.get("clip-path", "")
    if path.startswith(("circle(", "ellipse(")):
        return next(iter(numbers(path)), 1.0) == 0
    if path.startswith("polygon("):
        return set(numbers(path)) == {0.0}
    if not path.startswith("inset(") or "%" not in path:
        return False
    edges = numbers(path.partition("round")[0])
    # Top, right, bottom, left; what is left out is as on the other side.
    while 0 < len(edges) < 4:
        edges.append(edges[max(0, len(edges) - 2)])
    return len(edges) == 4 and (edges[0] + edges[2] >= 100 or edges[1] + edges[3] >= 100)


def _is_shrunk(values: Mapping[str, str]) -> bool:
    moved = values.get("transform", "")
    scales = [*re.findall(r"scale(?:[xy]|3d)?\(([^)]*)\)", moved), values.get("scale", ""), values.get("zoom", "")]
    if any(found and min(map(abs, found[:2])) <= _TINY for found in map(numbers, scales)):
        return True
    on_edge = re.search(r"rotate[xy]\(\s*-?(?:90|270)deg", moved)
    matrix = re.search(r"matrix\(([^)]*)\)", moved)
    return bool(on_edge) or (matrix is not None and not any(numbers(matrix[1])[:4]))


def _has_no_size(values: Mapping[str, str]) -> bool:
    small = [
        0 <= next(lengths(size), 16.0) <= _SMALLEST_SIZE_PX
        for name in ("width", "height")
        if (size := values.get(name) or values.get(f"max-{name}"))
    ]
    overflows = " ".join(values.get(name, "") for name in ("overflow", "overflow-x", "overflow-y")).split()
    is_cut_off = "hidden" in overflows or "clip" in overflows
    if is_cut_off and values.get("line-height") in ("0", "0px"):
        return True
    return (len(small) == 2 and all(small)) or (is_cut_off and any(small))


def _strip_at_rules(css: str) -> str:
    """Return the rules outside of @media, @supports and the like: whether those apply is not ours to know."""
    kept: list[str] = []
    start = 0
    while (at := css.find("@", start)) >= 0:
        kept.append(css[start:at])
        start = _end_of_block(css, at)
    return "".join([*kept, css[start:]])


def _end_of_block(css: str, at: int) -> int:
    depth = 0
    for mark in _EDGES.finditer(css, at):
        end = mark.end()
        depth += {"{": 1, "}": -1, ";": 0}[mark[0]]
        if depth <= 0:
            return end
    return len(css)
