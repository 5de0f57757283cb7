"""Render HTML tables as Markdown, with spans expanded and header rows joined, and detect layout tables."""

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
class _TableRow:
    """A row under construction; `is_header` if all its cells are headers."""

    cells: list[str] = field(default_factory=list)
    is_header: bool = False


def is_layout(table: HtmlElement) -> bool:
    """Return whether a table is used for page layout rather than data."""
    if table.get("role") in ("presentation", "none"):
        return True
    rows = list(table_rows(table))
    widest = max((len(_cells(row)) for row in rows), default=0)
    if widest <= 1:
        return True
    has_headers = any(cell.tag == "th" for row in rows for cell in row)
    cells = [cell for row in rows for cell in _cells(row)]
    if not has_headers and sum(not cell.text_content().strip() for cell in cells) > len(cells) * _MOSTLY_EMPTY:
        return True
    for row in rows:
        for cell in _cells(row):
            if any(child.tag in _BLOCKS_IN_LAYOUT for child in cell.iterdescendants()):
                return True
            if not has_headers and len(cell.text_content()) > _LONG_CELL:
                return True
    return False


def table_rows(table: HtmlElement) -> Iterator[HtmlElement]:
    """Yield the rows of a table, without those of nested tables."""
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child if row.tag == "tr")


def render_table(table: HtmlElement, render_cell: Callable[[HtmlElement], str]) -> str:
    """Render a data table; `render_cell` returns the text of one cell."""
    grid = _build_grid(table, render_cell)
    if not grid:
        return ""
    captions = []
    while len(grid) > 1 and len(grid[0].cells) > 1 and len(set(grid[0].cells) - {""}) == 1:
        # A single cell across the full width is a caption or an image.
        caption = max(grid.pop(0).cells)
        captions.append(f"{caption}\n" if caption.startswith("[") else f"**{caption}**\n")
    header, body = _split_header(grid)
    width = max(len(row) for row in (header, *body))
    return "\n".join(
        (*captions, _format_row(header, width), "|" + "---|" * width, *(_format_row(row, width) for row in body))
    )


def _build_grid(table: HtmlElement, render_cell: Callable[[HtmlElement], str]) -> list[_TableRow]:
    """Return all rows with column and row spans expanded."""
    rows: list[_TableRow] = []
    # By column: how many more rows a cell spans, and its text.
    spans: dict[int, tuple[int, str]] = {}
    count = 0
    for element in table_rows(table):
        row = _TableRow(is_header=all(cell.tag == "th" for cell in _cells(element)) or _is_in_thead(element))
        for cell in _cells(element):
            _fill_row_spans(row, spans)
            text = _clean_cell(render_cell(cell))
            colspan, rowspan = _span(cell, "colspan"), _span(cell, "rowspan")
            for number in range(colspan):
                if rowspan > 1:
                    spans[len(row.cells)] = (rowspan - 1, text if not number else "")
                row.cells.append(text if not number or row.is_header else "")
        _fill_row_spans(row, spans)
        count += len(row.cells)
        if count > _MAX_CELLS:
            break
        if any(row.cells):
            rows.append(row)
    return rows


def _fill_row_spans(row: _TableRow, spans: dict[int, tuple[int, str]]) -> None:
    while (column := len(row.cells)) in spans:
        rows_left, text = spans.pop(column)
        row.cells.append(text)
        if rows_left > 1:
            spans[column] = (rows_left - 1, text)


def _split_header(grid: list[_TableRow]) -> tuple[list[str], list[list[str]]]:
    """Return the header, joined from all header rows, and the body; without headers the first row becomes one."""
    count = next((at for at, row in enumerate(grid) if not row.is_header), len(grid))
    if count == len(grid):
        count = 1
    headers, body = grid[: max(count, 1)], grid[max(count, 1) :]
    width = max(len(row.cells) for row in headers)
    joined = [
        " ".join(dict.fromkeys(row.cells[column] for row in headers if column < len(row.cells) and row.cells[column]))
        for column in range(width)
    ]
    return joined, [row.cells for row in body]


def _format_row(cells: list[str], width: int) -> str:
    return "| " + " | ".join([*cells, *[""] * (width - len(cells))]) + " |"


def _clean_cell(text: str) -> str:
    line = " ".join(text.split()).replace("|", "\\|").lstrip("#").strip()
    # An entirely bold cell is a header already, or looks like one.
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
