"""Tables that fit: the widest texts give way first, then whole columns, the least important one first."""

from collections.abc import Sequence

from rich.cells import cell_len

from cli.screen.colors import clip, clip_line, to_single_line, wrap
from tooling.contract.fast_dataclass import dataclass

_GAP = "  "
# A narrower text beside its head is hard to read: it goes below.
_MIN_TEXT_WIDTH = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its cells are cut to `min_width` (0: never), and it is dropped by `drop_priority` (0: never)."""

    header: str
    cells: Sequence[str]
    min_width: int = 0
    drop_priority: int = 0


def render_table(columns: Sequence[Column], width: int | None) -> list[str]:
    """Return lines of at most `width` cells under their heads; without a width all texts stand whole and no heads."""
    if width is None:
        return [_GAP.join(row).rstrip() for row in zip(*(_pad_cells(column) for column in columns), strict=True)]
    columns = [
        Column(
            header=one.header, cells=[one.header, *one.cells], min_width=one.min_width, drop_priority=one.drop_priority
        )
        for one in columns
    ]
    while True:
        widths = _widths(columns, width)
        if widths is not None or not any(column.drop_priority for column in columns):
            break
        last = max(columns, key=lambda column: column.drop_priority)
        columns = [column for column in columns if column is not last]
    cells = [_pad_cells(column, most) for column, most in zip(columns, widths or [width] * len(columns), strict=True)]
    return [clip_line(_GAP.join(row).rstrip(), width) for row in zip(*cells, strict=True)]


def render_rows(cells: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Return rows whose last cell is a text to be read whole: what does not fit goes on below its beginning."""
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)][:-1]
    indent = sum(widths) + len(_GAP) * len(widths)
    room = None if width is None else width - indent if width - indent >= _MIN_TEXT_WIDTH else 0
    return [line for row in cells for line in _render_row(row, widths, room, width or 0)]


def _render_row(row: Sequence[str], widths: Sequence[int], room: int | None, width: int) -> list[str]:
    head = "".join(f"{cell}{' ' * (most - cell_len(cell))}{_GAP}" for cell, most in zip(row, widths, strict=False))
    if room is None:
        return [f"{head}{row[-1]}"]
    if not room:
        return [head.rstrip(), *wrap(f"    {row[-1]}", width)]
    first, *rest = wrap(row[-1], room)
    return [f"{head}{first}", *(" " * cell_len(head) + line for line in rest)]


def _widths(columns: Sequence[Column], width: int) -> list[int] | None:
    """Return how wide each column may be, or None when they do not fit side by side."""
    widths = [_natural_width(column) for column in columns]
    excess = sum(widths) + len(_GAP) * (len(columns) - 1) - width
    while excess > 0:
        spare = [
            max(0, now - column.min_width) if column.min_width else 0
            for now, column in zip(widths, columns, strict=True)
        ]
        if not any(spare):
            return None
        # The widest gives until it is as wide as the next.
        place = max(range(len(columns)), key=lambda n: (bool(spare[n]), widths[n]))
        widths[place] -= 1
        excess -= 1
    return widths


def _natural_width(column: Column) -> int:
    return max((cell_len(to_single_line(cell)) for cell in column.cells), default=0)


def _pad_cells(column: Column, width: int | None = None) -> list[str]:
    cells = [to_single_line(cell) if width is None else clip(cell, width) for cell in column.cells]
    widest = max(map(cell_len, cells), default=0)
    return [cell + " " * (widest - cell_len(cell)) for cell in cells]
