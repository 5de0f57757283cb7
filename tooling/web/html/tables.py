"""Tables as rows of Markdown: spans filled in, heads of several lines joined; and which only lay out a page."""

from collections.abc import Callable, Iterator
from dataclasses import field

from lxml.html import HtmlElement

from tooling.contract.fast_dataclass import dataclass

_MAX_SPAN = 60
_MAX_CELLS = 40_000
_BLOCKS_IN_LAYOUT = frozenset(("table", "h1", "h2", "h3", "h4", "form", "article", "section", "iframe", "hr"))
_LONG_CELL = 400
_MOSTLY_EMPTY = 0.3


@dataclass(slots=True)
class _Row:
    """One line of a table on its way; `is_head` says that all its cells are headings."""

    cells: list[str] = field(default_factory=list)
    is_header: bool = False


def is_layout(table: HtmlElement) -> bool:
    """Say whether a table only puts blocks of a page side by side."""
    if table.get("role") in ("presentation", "none"):
        return True
    rows = list(table_rows(table))
    widest = max((len(_cells(row)) for row in rows), default=0)
    if widest <= 1:
        return True
    has_heads = any(cell.tag == "th" for row in rows for cell in row)
    cells = [cell for row in rows for cell in _cells(row)]
    if not has_heads and sum(not cell.text_content().strip() for cell in cells) > len(cells) * _MOSTLY_EMPTY:
        return True
    for row in rows:
        for cell in _cells(row):
            if any(child.tag in _BLOCKS_IN_LAYOUT for child in cell.iterdescendants()):
                return True
            if not has_heads and len(cell.text_content()) > _LONG_CELL:
                return True
    return False


def table_rows(table: HtmlElement) -> Iterator[HtmlElement]:
    """Yield the rows of a table, not those of tables inside it."""
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child if row.tag == "tr")


def render_table(table: HtmlElement, written: Callable[[HtmlElement], str]) -> str:
    """Return a table of data; `written` makes the text of one cell."""
    grid = _build_grid(table, written)
    if not grid:
        return ""
    above = []
    while len(grid) > 1 and len(grid[0].cells) > 1 and len(set(grid[0].cells) - {""}) == 1:
        # One cell over the whole width is a caption, or a picture.
        caption = max(grid.pop(0).cells)
        above.append(f"{caption}\n" if caption.startswith("[") else f"**{caption}**\n")
    head, body = _split_header(grid)
    width = max(len(row) for row in (head, *body))
    return "\n".join(
        (*above, _format_row(head, width), "|" + "---|" * width, *(_format_row(row, width) for row in body))
    )


def _build_grid(table: HtmlElement, written: Callable[[HtmlElement], str]) -> list[_Row]:
    """Return all rows with the cells that reach into them from above and from the left."""
    rows: list[_Row] = []
    hanging: dict[int, tuple[int, str]] = {}
    count = 0
    for element in table_rows(table):
        row = _Row(is_header=all(cell.tag == "th" for cell in _cells(element)) or _is_in_thead(element))
        for cell in _cells(element):
            _fill_row_spans(row, hanging)
            text = _clean_cell(written(cell))
            wide, high = _span(cell, "colspan"), _span(cell, "rowspan")
            for number in range(wide):
                if high > 1:
                    hanging[len(row.cells)] = (high - 1, text if not number else "")
                row.cells.append(text if not number or row.is_header else "")
        _fill_row_spans(row, hanging)
        count += len(row.cells)
        if count > _MAX_CELLS:
            break
        if any(row.cells):
            rows.append(row)
    return rows


def _fill_row_spans(row: _Row, hanging: dict[int, tuple[int, str]]) -> None:
    while (place := len(row.cells)) in hanging:
        left, text = hanging.pop(place)
        row.cells.append(text)
        if left > 1:
            hanging[place] = (left - 1, text)


def _split_header(grid: list[_Row]) -> tuple[list[str], list[list[str]]]:
    """Return one line of headings and the rest; headings of several lines are joined, none makes the first row one."""
    number = next((at for at, row in enumerate(grid) if not row.is_header), len(grid))
    if number == len(grid):
        number = 1
    heads, body = grid[: max(number, 1)], grid[max(number, 1) :]
    width = max(len(row.cells) for row in heads)
    joined = [
        " ".join(dict.fromkeys(row.cells[place] for row in heads if place < len(row.cells) and row.cells[place]))
        for place in range(width)
    ]
    return joined, [row.cells for row in body]


def _format_row(cells: list[str], width: int) -> str:
    return "| " + " | ".join([*cells, *[""] * (width - len(cells))]) + " |"


def _clean_cell(text: str) -> str:
    line = " ".join(text.split()).replace("|", "\\|").lstrip("#").strip()
    # Cells that are bold as a whole are headings already, or look like them.
    is_bold = line.startswith("**") and line.endswith("**") and line.count("**") == 2
    return line[2:-2] if is_bold else line


def _cells(row: HtmlElement) -> list[HtmlElement]:
    return [cell for cell in row if cell.tag in ("td", "th")]


def _is_in_thead(row: HtmlElement) -> bool:
    parent = row.getparent()
    return parent is not None and parent.tag == "thead"


def _span(cell: HtmlElement, name: str) -> int:
    text = cell.get(name, "1").strip()
    return min(max(int(text), 1), _MAX_SPAN) if text.isascii() and text.isdigit() and len(text) < 6 else 1
