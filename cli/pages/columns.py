"""Tables that fit: the widest texts give way first, then whole columns, the least important one first."""

from collections.abc import Sequence

from rich.cells import cell_len

from cli.screen.colors import clipped, clipped_line, shown, wrapped
from tooling.contract.fast_dataclass import dataclass

_GAP = "  "
# A narrower text beside its head is hard to read: it goes below.
_LEAST_TEXT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column; `least` is how narrow its texts may be cut (0: never), `yields` says when it goes (0: never)."""

    head: str
    cells: Sequence[str]
    least: int = 0
    yields: int = 0


def table(columns: Sequence[Column], width: int | None) -> list[str]:
    """Return lines of at most `width` cells under their heads; without a width all texts stand whole and no heads."""
    if width is None:
        return [_GAP.join(row).rstrip() for row in zip(*(_padded(column) for column in columns), strict=True)]
    columns = [
        Column(head=one.head, cells=[one.head, *one.cells], least=one.least, yields=one.yields) for one in columns
    ]
    while True:
        widths = _widths(columns, width)
        if widths is not None or not any(column.yields for column in columns):
            break
        last = max(columns, key=lambda column: column.yields)
        columns = [column for column in columns if column is not last]
    cells = [_padded(column, most) for column, most in zip(columns, widths or [width] * len(columns), strict=True)]
    return [clipped_line(_GAP.join(row).rstrip(), width) for row in zip(*cells, strict=True)]


def rows(cells: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Return rows whose last cell is a text to be read whole: what does not fit goes on below its beginning."""
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)][:-1]
    indent = sum(widths) + len(_GAP) * len(widths)
    room = None if width is None else width - indent if width - indent >= _LEAST_TEXT else 0
    return [line for row in cells for line in _row(row, widths, room, width or 0)]


def _row(row: Sequence[str], widths: Sequence[int], room: int | None, width: int) -> list[str]:
    head = "".join(f"{cell}{' ' * (most - cell_len(cell))}{_GAP}" for cell, most in zip(row, widths, strict=False))
    if room is None:
        return [f"{head}{row[-1]}"]
    if not room:
        return [head.rstrip(), *wrapped(f"    {row[-1]}", width)]
    first, *rest = wrapped(row[-1], room)
    return [f"{head}{first}", *(" " * cell_len(head) + line for line in rest)]


def _widths(columns: Sequence[Column], width: int) -> list[int] | None:
    """Return how wide each column may be, or None when they do not fit side by side."""
    widths = [_natural(column) for column in columns]
    excess = sum(widths) + len(_GAP) * (len(columns) - 1) - width
    while excess > 0:
        spare = [max(0, now - column.least) if column.least else 0 for now, column in zip(widths, columns, strict=True)]
        if not any(spare):
            return None
        # The widest gives until it is as wide as the next.
        place = max(range(len(columns)), key=lambda n: (bool(spare[n]), widths[n]))
        widths[place] -= 1
        excess -= 1
    return widths


def _natural(column: Column) -> int:
    return max((cell_len(shown(cell)) for cell in column.cells), default=0)


def _padded(column: Column, width: int | None = None) -> list[str]:
    cells = [shown(cell) if width is None else clipped(cell, width) for cell in column.cells]
    widest = max(map(cell_len, cells), default=0)
    return [cell + " " * (widest - cell_len(cell)) for cell in cells]
