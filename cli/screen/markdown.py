"""Markdown rendered for a terminal."""

import io

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, ListItem, Markdown
from rich.segment import Segment
from rich.text import Text
from rich.theme import Theme

from cli.screen.colors import Paint
from cli.screen.markdown_stream import split_blocks
from cli.screen.sanitize import sanitize, strip_invisible
from tooling.contract.lazy_pattern import lazy_pattern

_MAX_WIDTH = 100
_COLOR = lazy_pattern(r"\x1b\[[0-9;]*m")


class _LeftHeading(Heading):
    """A left-aligned heading."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("")
        yield Text.assemble((self.text.plain, "bold underline" if self.tag in ("h1", "h2") else "bold"))


class _NumberedItem(ListItem):
    """An item whose number keeps its dot."""

    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        """Yield the item with its number, later lines indented as far as the first."""
        width = len(str(last_number)) + 3
        lines = console.render_lines(self.elements, options.update(width=options.max_width - width), style=self.style)
        style = console.get_style("markdown.item.number")
        for index, line in enumerate(lines):
            yield Segment(" " * width if index else f"{number}.".rjust(width - 1) + " ", style)
            yield from line
            yield Segment("\n")


class _PlainMarkdown(Markdown):
    """Markdown without boxes around headings and without centered text."""

    elements = {**Markdown.elements, "heading_open": _LeftHeading, "list_item_open": _NumberedItem}  # noqa: RUF012 (rich's own pattern)


def _parse(block: str, paint: Paint) -> Markdown:
    """Parse a block; a link whose text is its address is that text alone."""
    markdown = _PlainMarkdown(block, code_theme=f"ansi_{paint.theme}", hyperlinks=False)
    for token in markdown.parsed:
        children = token.children or []
        for at, child in enumerate(children[:-2]):
            if child.type == "link_open" and child.attrs.get("href") == children[at + 1].content:
                child.type = children[at + 2].type = "text"
    return markdown


def render_markdown(text: str, *, width: int, paint: Paint) -> str:
    """Render Markdown for a width, one blank line between blocks."""
    screen = io.StringIO()
    console = Console(
        file=screen,
        width=max(10, min(width, _MAX_WIDTH)),
        force_terminal=paint.has_color,
        color_system="standard" if paint.has_color else None,
        no_color=not paint.has_color,
        legacy_windows=False,
        highlight=False,
        theme=_theme(paint),
    )
    for block in split_blocks(sanitize(text)):
        console.print(_parse(block, paint))
        console.print()
    # Entities such as &#27; bring back characters that `sanitize` removed.
    drawn = strip_invisible(screen.getvalue())
    lines = [line.rstrip() if _COLOR.sub("", line).strip() else "" for line in drawn.splitlines()]
    # Some blocks start or end with blank lines; leave one between two blocks.
    apart = [line for line, before in zip(lines, ["", *lines], strict=False) if line or before]
    return "".join(f"{line}\n" for line in apart).rstrip("\n") + "\n"


def _theme(paint: Paint) -> Theme:
    """Return the few colors used elsewhere, which are readable on light and dark backgrounds."""
    accent = "blue" if paint.theme == "light" else "cyan"
    return Theme(
        {
            "markdown.code": f"bold {accent}",
            "markdown.block_quote": "italic",
            "markdown.item.number": "default",
            "markdown.link": "underline",
            "markdown.link_url": "dim",
            "markdown.table.header": "bold",
            "markdown.table.border": "dim",
        }
    )
