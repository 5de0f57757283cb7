"""Colours by meaning and widths by cells: the only place that knows escape sequences for text."""

import unicodedata
from collections.abc import Mapping
from typing import Literal, TypeAlias

from rich.cells import cell_len, chop_cells, set_cell_size

Tone: TypeAlias = Literal["plain", "strong", "quiet", "good", "bad", "warn", "accent", "added", "removed"]

# Only the sixteen colours a person's own theme defines, and none that vanishes on a light or a dark ground.
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
    """Puts tones on text, or leaves it bare where no colour is wanted."""

    def __init__(self, *, has_colour: bool, theme: str = "dark") -> None:
        self.has_colour = has_colour
        self.theme = theme

    def __call__(self, tone: Tone, text: str) -> str:
        """Return the text in a tone."""
        code = THEMES[self.theme][tone] if self.has_colour else ""
        return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


def resolve_theme(theme: str, environ: Mapping[str, str]) -> str:
    """Return the theme to paint with: the one that is set, else the one that fits what the terminal says of itself."""
    if theme in THEMES:
        return theme
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if background in ("7", "15") else "dark"


def clip(text: str, width: int) -> str:
    """Return words on one line of at most `width` cells; what is cut is marked."""
    return _truncate(to_single_line(text), width)


def clip_line(text: str, width: int) -> str:
    """Return a line as it is, its blanks kept, in at most `width` cells; what is cut is marked."""
    return _truncate(_sanitize_line(text), width)


def clip_start(text: str, width: int) -> str:
    """Return the newest part of a line that is still being written."""
    line = to_single_line(text)
    if cell_len(line) <= width:
        return line
    while line and cell_len(line) > width - 1:
        line = line[max(1, (cell_len(line) - width) // 2) :]
    return f"…{line}"


def wrap(text: str, width: int) -> list[str]:
    """Return a text as lines that fit, broken between words, its indentation kept."""
    indent = " " * (len(text) - len(text.lstrip(" ")))
    width -= len(indent)
    lines = [""]
    for word in to_single_line(text).split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        # A word that no line can hold whole need not begin one.
        if lines[-1] and cell_len(longer) > width >= cell_len(word):
            lines.append(word)
        else:
            lines[-1] = longer
    return [indent + piece for line in lines for piece in chop_cells(line, max(2, width)) or [""]]


def wrap_lines(text: str, width: int) -> list[str]:
    """Return the lines of a text; those that are too long are broken between words, the others stay as they are."""
    return [piece for line in text.splitlines() for piece in _wrap_line(line, width)]


def to_single_line(text: str) -> str:
    """Return text on one line, with nothing in it that could move the cursor or hide something."""
    return _sanitize_line(" ".join(text.split()))


def _wrap_line(line: str, width: int) -> list[str]:
    safe = _sanitize_line(line)
    return [safe] if cell_len(safe) <= width else wrap(safe, width)


def _truncate(line: str, width: int) -> str:
    if width <= 0:
        return ""
    return line if cell_len(line) <= width else set_cell_size(line, width - 1).rstrip() + "…"


def _sanitize_line(line: str) -> str:
    return line if line.isprintable() else "".join(mark if _is_safe(mark) else "�" for mark in line)


def _is_safe(mark: str) -> bool:
    # Joiners and combining marks are not printable by themselves but belong to what people write.
    return mark.isprintable() or mark in "\u200c\u200d" or unicodedata.category(mark) in ("Mn", "Me")
