"""What a browser would not show: text of no size, off the screen, transparent or switched off."""

import re
from collections.abc import Mapping
from dataclasses import field

from tooling.contract.fact import dataclass

MOST_CSS_CHARS = 200_000
_OFF_SCREEN_PX = -400.0
_INVISIBLE_OPACITY = 0.05
_SMALLEST_SIZE_PX = 1.0

_COMMENT = r"/\*.*?(?:\*/|\Z)"
# The name of a tag, a class, an id, or a tag with one of these; longer selectors need a whole page to be understood.
_SELECTOR = r"([a-z][a-z0-9]*)?(?:([.#])(-?[_a-z][\w-]*))?"
_EDGES = re.compile("[{};]")
_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)"
_OFFSETS = ("left", "right", "top", "bottom", "text-indent", "margin-left", "margin-top")


@dataclass(slots=True)
class StyleSheet:
    """The simple selectors of a page's own styles that hide what they match."""

    hiding: set[tuple[str, str, str]] = field(default_factory=set)

    def read(self, css: str) -> None:
        """Take in the text of a style element; what stands inside @media and the like does not count."""
        css = _without_nested(re.sub(_COMMENT, "", css[:MOST_CSS_CHARS], flags=re.DOTALL))
        for rule in css.split("}"):
            selectors, brace, style = rule.rpartition("{")
            if not brace or not hides(style):
                continue
            for selector in selectors.split(","):
                if simple := re.fullmatch(_SELECTOR, selector.strip(), re.IGNORECASE):
                    self.hiding.add(((simple[1] or "").lower(), simple[2] or "", simple[3] or ""))

    def hides(self, tag: str, attributes: Mapping[str, str]) -> bool:
        """Say whether a rule hides an element."""
        if not self.hiding:
            return False
        marks = [("", ""), *((".", name) for name in attributes.get("class", "").split())]
        marks += [("#", attributes["id"])] if attributes.get("id") else []
        return any((name, kind, mark) in self.hiding for kind, mark in marks for name in (tag, "") if name or kind)


def is_hidden(tag: str, attributes: Mapping[str, str], sheet: StyleSheet | None = None) -> bool:
    """Say whether an element is hidden, by itself: what is inside a hidden one has to be left out as well."""
    if "hidden" in attributes or (tag == "input" and attributes.get("type", "").lower() == "hidden"):
        return True
    style = attributes.get("style", "")
    return bool(style and hides(style)) or (sheet is not None and sheet.hides(tag, attributes))


def hides(style: str) -> bool:
    """Say whether the declarations of a style leave nothing to see."""
    values = _declarations(style)
    if values.get("display") == "none" or values.get("visibility") in ("hidden", "collapse"):
        return True
    if values.get("content-visibility") == "hidden" or _is_transparent(values):
        return True
    if "font-size" in values and 0 <= _pixels(values["font-size"], 16.0) <= _SMALLEST_SIZE_PX:
        return True
    if any(_pixels(values.get(name, ""), 0.0) <= _OFF_SCREEN_PX for name in _OFFSETS):
        return True
    return _is_clipped(values) or _has_no_room(values)


def _declarations(style: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for part in style.lower().split(";"):
        name, colon, value = part.partition(":")
        if colon:
            values[name.strip()] = value.replace("!important", "").strip()
    return values


def _is_transparent(values: Mapping[str, str]) -> bool:
    opacity = re.match(_NUMBER, values.get("opacity", ""))
    if opacity and float(opacity[0]) <= _INVISIBLE_OPACITY * (100 if "%" in values["opacity"] else 1):
        return True
    ink = values.get("color", "")
    if ink == "transparent" or re.fullmatch(r"rgba\([^)]*,\s*0(?:\.0*)?\)|#(?:[0-9a-f]{6}00|[0-9a-f]{3}0)", ink):
        return True
    paper = values.get("background-color") or values.get("background", "")
    return bool(ink) and _colour(ink) == _colour(paper)


def _colour(text: str) -> str:
    names = {"white": "#ffffff", "black": "#000000"}
    text = names.get(text, text.replace(" ", ""))
    return "#" + "".join(digit * 2 for digit in text[1:]) if re.fullmatch("#[0-9a-f]{3}", text) else text


def _is_clipped(values: Mapping[str, str]) -> bool:
    box = values.get("clip", "")
    if box.startswith("rect") and all(abs(float(edge)) <= 1 for edge in re.findall(_NUMBER, box)):
        return True
    path = values.get("clip-path", "")
    if re.match(r"inset\(\s*(?:[5-9]\d|100)(?:\.\d+)?%|circle\(\s*0|polygon\(\s*0(?:px)? 0(?:px)?\s*\)", path):
        return True
    moved = values.get("transform", "")
    if re.search(r"scale[xy]?\(\s*0(?:\.0*)?\s*[,)]", moved):
        return True
    return "translate" in moved and any(float(way) <= _OFF_SCREEN_PX for way in re.findall(rf"({_NUMBER})px", moved))


def _has_no_room(values: Mapping[str, str]) -> bool:
    small = [
        0 <= _pixels(size, 16.0) <= _SMALLEST_SIZE_PX
        for name in ("width", "height")
        if (size := values.get(name) or values.get(f"max-{name}"))
    ]
    is_cut_off = values.get("overflow", "visible") in ("hidden", "clip")
    return (len(small) == 2 and all(small)) or (is_cut_off and any(small))


def _pixels(value: str, otherwise: float) -> float:
    """Return a length in pixels, roughly; relative units count as sixteen."""
    found = re.match(rf"({_NUMBER})\s*([a-z%]*)", value)
    if not found:
        return otherwise
    scale = {"": 1.0, "px": 1.0, "pt": 1.33, "em": 16.0, "rem": 16.0, "ch": 8.0, "cm": 38.0, "in": 96.0}
    return float(found[1]) * scale.get(found[2], 10.0)


def _without_nested(css: str) -> str:
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
