"""Semantic colors and cell widths: the only module with escape sequences for text."""

import unicodedata
from collections.abc import Mapping
from typing import Literal, TypeAlias

from rich.cells import cell_len, chop_cells, set_cell_size

Tone: TypeAlias = Literal["plain", "strong", "quiet", "good", "bad", "warn", "accent", "added", "removed"]

# Only the sixteen colors of the user's own theme, and none that vanishes on a light or dark background.
_DARK: Mapping[Tone, str] = {
    "plain": "",
    "strong": "1",
    "quiet": "2",
    "good": "32",
    "bad": "31",
    "warn": "33",
    "accent": "36",
    "added": "32",
    "removed": "31",
}
_LIGHT: Mapping[Tone, str] = {**_DARK, "warn": "35", "accent": "34"}
THEMES: Mapping[str, Mapping[Tone, str]] = {"dark": _DARK, "light": _LIGHT}


class Paint:
    """Applies tones to text, or returns it unchanged without color."""

    def __init__(self, *, has_color: bool, theme: str = "dark") -> None:
        self.has_color = has_color
        self.theme = theme

    def __call__(self, tone: Tone, text: str) -> str:
        code = THEMES[self.theme][tone] if self.has_color else ""
        return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


def resolve_theme(theme: str, environ: Mapping[str, str]) -> str:
    """Return the configured theme, or for `auto` the one that fits the terminal's COLORFGBG."""
    if theme in THEMES:
        return theme
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if background in ("7", "15") else "dark"


def clip(text: str, width: int) -> str:
    """Collapse text to one line of at most `width` cells; an ellipsis marks a cut."""
    return _truncate(to_single_line(text), width)


def clip_line(text: str, width: int) -> str:
    """Clip a line to `width` cells, preserving its spaces; an ellipsis marks a cut."""
    return _truncate(_sanitize_line(text), width)


def paint_parts(paint: Paint, width: int, *parts: tuple[Tone, str]) -> str:
    """Return one line of painted parts, clipped to `width` cells; an ellipsis marks a cut."""
    line, left = "", width
    safe = [(tone, _sanitize_line(text)) for tone, text in parts if text]
    for number, (tone, text) in enumerate(safe):
        is_last = number == len(safe) - 1
        if cell_len(text) > left - (0 if is_last else 1):
            rest = "" if is_last else " "
            return line + paint(tone, _truncate(text + rest * (left + 1), left))
        line += paint(tone, text)
        left -= cell_len(text)
    return line


def clip_start(text: str, width: int) -> str:
    """Return the end of a growing line, in at most `width` cells."""
    line = to_single_line(text)
    if cell_len(line) <= width:
        return line
    while line and cell_len(line) > width - 1:
        line = line[max(1, (cell_len(line) - width) // 2) :]
    return f"…{line}"


def wrap(text: str, width: int) -> list[str]:
    """Wrap text between words, preserving its indentation."""
    indent = " " * (len(text) - len(text.lstrip(" ")))
    width -= len(indent)
    lines = [""]
    for word in to_single_line(text).split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        # A word longer than a line is broken anyway, so it need not start on a new line.
        if lines[-1] and cell_len(longer) > width >= cell_len(word):
            lines.append(word)
        else:
            lines[-1] = longer
    return [indent + piece for line in lines for piece in chop_cells(line, max(2, width)) or [""]]


def wrap_lines(text: str, width: int) -> list[str]:
    """Wrap the lines that are too long; the others stay unchanged."""
    return [piece for line in text.splitlines() for piece in _wrap_line(line, width)]


def to_single_line(text: str) -> str:
    """Collapse text to one line without characters that move the cursor or hide text."""
    return _sanitize_line(" ".join(text.split()))


def _wrap_line(line: str, width: int) -> list[str]:
    safe = _sanitize_line(line)
    return [safe] if cell_len(safe) <= width else wrap(safe, width)


def _truncate(line: str, width: int) -> str:
    if width <= 0:
        return ""
    return line if cell_len(line) <= width else set_cell_size(line, width - 1).rstrip() + "…"


def _sanitize_line(line: str) -> str:
    return line if line.isprintable() else "".join(char if _is_safe(char) else "�" for char in line)


def _is_safe(char: str) -> bool:
    # Joiners and combining marks do not count as printable, but many languages are written with them.
    return char.isprintable() or char in "\u200c\u200d" or unicodedata.category(char) in ("Mn", "Me")
