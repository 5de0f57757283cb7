"""Renders a terminal screen, cells with their colors, as SVG."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby

import pyte
from pyte.screens import Char

_CELL, _LINE, _SIZE, _EDGE, _BAR = 8.4, 18.0, 14, 14, 34
_BACKGROUND, _FOREGROUND, _FRAME = "#16181d", "#d3d7de", "#3a3f4b"
_COLORS = {
    "black": "#3a3f4b",
    "red": "#f07178",
    "green": "#a5d97b",
    "brown": "#ffcb6b",
    "blue": "#82aaff",
    "magenta": "#c792ea",
    "cyan": "#7fdbca",
    "white": "#d3d7de",
    "brightblack": "#7d8694",
    "default": _FOREGROUND,
}
_FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
_SGR = re.compile(rb"\x1b\[([0-9;]*)m")


@dataclass(frozen=True, kw_only=True)
class TextRun:
    """Adjacent cells of one line with the same style."""

    column: int
    cells: int
    text: str
    style: tuple[str, str, bool, bool]


def render_screen(sent: bytes, *, columns: int, rows: int) -> pyte.Screen:
    """Return the screen after a terminal received these bytes."""
    screen = pyte.Screen(columns, rows)
    pyte.ByteStream(screen).feed(_SGR.sub(_without_faint, sent))
    return screen


def render_svg(screen: pyte.Screen, *, title: str) -> str:
    """Return the SVG of a window that shows the screen down to its last non-empty line."""
    rows = max((row for row, text in enumerate(screen.display) if text.strip()), default=0) + 1
    width, height = screen.columns * _CELL + 2 * _EDGE, rows * _LINE + _BAR + 2 * _EDGE
    body = [element for row in range(rows) for run in _runs(screen, row) for element in _render_run(row, run)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(title)}" font-family="{_FONTS}" font-size="{_SIZE}">'
    )
    frame = f'<rect width="100%" height="100%" rx="8" fill="{_BACKGROUND}" stroke="{_FRAME}"/>'
    dots = [f'<circle cx="{22 + 18 * index}" cy="20" r="5" fill="{_FRAME}"/>' for index in range(3)]
    name = f'<text x="50%" y="25" text-anchor="middle" fill="{_COLORS["brightblack"]}">{escape(title)}</text>'
    return "\n".join((head, frame, *dots, name, *body, "</svg>")) + "\n"


def _without_faint(match: re.Match[bytes]) -> bytes:
    """Turn faint text into grey text, because the emulator does not support faint."""
    codes = match[1].split(b";")
    is_palette = b"38" in codes or b"48" in codes
    return match[0] if is_palette else b"\x1b[%sm" % b";".join(b"90" if code == b"2" else code for code in codes)


def _runs(screen: pyte.Screen, row: int) -> Iterator[TextRun]:
    """Return the visible parts of a line, including blanks between words of one style."""
    cells = [(column, screen.buffer[row][column]) for column in range(screen.columns)]
    for (style, _), together in groupby(cells, key=lambda cell: (_style(cell[1]), _is_braille(cell[1]))):
        part = list(together)
        text = "".join(char.data for _, char in part)
        if style[1] == _BACKGROUND and not text.strip():
            continue
        yield TextRun(column=part[0][0], cells=len(part), text=text, style=style)


def _is_braille(char: Char) -> bool:
    """Whether a cell is a spinner; few monospaced fonts have these characters, and others would shift the rest."""
    return "\u2800" <= char.data <= "\u28ff"


def _style(char: Char) -> tuple[str, str, bool, bool]:
    ink, ground = _color(char.fg, _FOREGROUND), _color(char.bg, _BACKGROUND)
    return (ground, ink, char.bold, char.underscore) if char.reverse else (ink, ground, char.bold, char.underscore)


def _color(name: str, otherwise: str) -> str:
    if name == "default":
        return otherwise
    return _COLORS.get(name) or _COLORS.get(name.removeprefix("bright")) or f"#{name}"


def _render_run(row: int, run: TextRun) -> Iterator[str]:
    ink, ground, is_bold, is_underlined = run.style
    x, y = _EDGE + run.column * _CELL, _EDGE + _BAR + row * _LINE
    if ground != _BACKGROUND:
        yield f'<rect x="{x:.1f}" y="{y:.0f}" width="{run.cells * _CELL:.1f}" height="{_LINE:.0f}" fill="{ground}"/>'
    text = run.text.rstrip()
    if not text:
        return
    # Every run has the length of its cells, whatever font its reader has.
    length = (run.cells - (len(run.text) - len(text))) * _CELL
    weight = ' font-weight="bold"' if is_bold else ""
    line = ' text-decoration="underline"' if is_underlined else ""
    yield (
        f'<text x="{x:.1f}" y="{y + 13.5:.1f}" fill="{ink}"{weight}{line} xml:space="preserve" '
        f'textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs">{escape(text, quote=False)}</text>'
    )
