"""Tables that fit the terminal: long cells are clipped first, then the least important columns dropped."""

from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len

from cli.screen.colors import Paint, Tone, clip, paint_parts, to_single_line, wrap
from tooling.contract.fast_dataclass import dataclass

_GAP = "  "
# In a narrower column text is hard to read, so it is put on separate lines.
_MIN_TEXT_WIDTH = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column; cells are clipped down to `min_width`, the highest `drop_priority` is dropped first (0: never).

    `tones` are the colors of its cells, `tone` that of all.
    """

    header: str
    cells: Sequence[str]
    min_width: int = 0
    drop_priority: int = 0
    tone: Tone = "plain"
    tones: Sequence[Tone] = ()


def render_table(columns: Sequence[Column], width: int | None, paint: Paint | None = None) -> list[str]:
    """Render rows of at most `width` cells under a header; with `width=None` nothing is clipped and no header added."""
    if width is None:
        return [_GAP.join(row).rstrip() for row in zip(*(_pad_cells(column) for column in columns), strict=True)]
    columns = [replace(column, cells=[column.header, *column.cells]) for column in columns]
    while True:
        widths = _widths(columns, width)
        if widths is not None or not any(column.drop_priority for column in columns):
            break
        dropped = max(columns, key=lambda column: column.drop_priority)
        columns = [column for column in columns if column is not dropped]
    limits = widths or [width] * len(columns)
    cells = [_pad_cells(column, limit) for column, limit in zip(columns, limits, strict=True)]
    tones = [_cell_tones(column) for column in columns]
    rows = zip(zip(*cells, strict=True), zip(*tones, strict=True), strict=True)
    return [_paint_row(row, row_tones, width, paint or Paint(has_color=False)) for row, row_tones in rows]


def _cell_tones(column: Column) -> list[Tone]:
    """Return the tone of the header and of every cell."""
    return ["quiet", *(column.tones or [column.tone] * (len(column.cells) - 1))]


def _paint_row(row: Sequence[str], tones: Sequence[Tone], width: int, paint: Paint) -> str:
    *first, last = zip(tones, row, strict=True)
    cells = [(tone, f"{cell}{_GAP}") for tone, cell in first]
    return paint_parts(paint, width, *cells, (last[0], last[1].rstrip())).rstrip()


def render_rows(
    cells: Sequence[Sequence[str]],
    width: int | None,
    *,
    tones: Sequence[Tone] = (),
    paint: Paint | None = None,
) -> list[str]:
    """Render rows whose last cell is wrapped instead of clipped, with a hanging indent; `tones` color first cells."""
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)][:-1]
    indent = sum(widths) + len(_GAP) * len(widths)
    room = None if width is None else width - indent if width - indent >= _MIN_TEXT_WIDTH else 0
    lines: list[str] = []
    plain: list[Tone] = ["plain"] * len(cells)
    for row, tone in zip(cells, tones or plain, strict=True):
        first, *rest = _render_row(row, widths, room, width or 0)
        mark = row[0] if paint and first.startswith(row[0]) else ""
        lines += [(paint(tone, mark) if paint else "") + first[len(mark) :], *rest]
    return lines


def _render_row(row: Sequence[str], widths: Sequence[int], room: int | None, width: int) -> list[str]:
    head = "".join(f"{cell}{' ' * (wide - cell_len(cell))}{_GAP}" for cell, wide in zip(row, widths, strict=False))
    if room is None:
        return [f"{head}{row[-1]}"]
    if not room:
        return [head.rstrip(), *wrap(f"    {row[-1]}", width)]
    first, *rest = wrap(row[-1], room)
    return [f"{head}{first}", *(" " * cell_len(head) + line for line in rest)]


def _widths(columns: Sequence[Column], width: int) -> list[int] | None:
    """Return the width of each column, or None if they do not fit side by side."""
    widths = [_natural_width(column) for column in columns]
    excess = sum(widths) + len(_GAP) * (len(columns) - 1) - width
    while excess > 0:
        spare = [
            max(0, now - column.min_width) if column.min_width else 0
            for now, column in zip(widths, columns, strict=True)
        ]
        if not any(spare):
            return None
        # Shrink the widest column until it is as wide as the next one.
        widest = max(range(len(columns)), key=lambda n: (bool(spare[n]), widths[n]))
        widths[widest] -= 1
        excess -= 1
    return widths


def _natural_width(column: Column) -> int:
    return max((cell_len(to_single_line(cell)) for cell in column.cells), default=0)


def _pad_cells(column: Column, width: int | None = None) -> list[str]:
    cells = [to_single_line(cell) if width is None else clip(cell, width) for cell in column.cells]
    widest = max(map(cell_len, cells), default=0)
    return [cell + " " * (widest - cell_len(cell)) for cell in cells]
