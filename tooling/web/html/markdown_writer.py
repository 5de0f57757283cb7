"""Write an HTML tree as Markdown: paragraphs, headings, lists, definitions, tables, code."""

import re
from collections.abc import Iterator

from lxml.html import HtmlElement

from tooling.web.html.inline import (
    LinkResolver,
    add_space_between,
    collapse_spaces,
    flatten_whitespace,
    render_inline,
    render_line,
)
from tooling.web.html.tables import is_layout, render_table, table_rows

_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_CONTAINERS = frozenset(
    """
    html body div section article main header footer aside nav center form fieldset figure figcaption details summary
    address hgroup dialog p h1 h2 h3 h4 h5 h6 ul ol menu dir li dl dt dd blockquote pre table thead tbody tfoot tr td th
    caption hr frameset frame noframes noscript font legend label optgroup
    """.split()  # noqa: SIM905 (sixty quoted words would hide the list)
)
_LANGUAGE = r"(?:^|\s)(?:highlight-source-|highlight-|language-|lang-|brush:\s*)([a-z][a-z0-9+#-]*)"
_NO_LANGUAGES = ("default", "none", "text", "plaintext", "plain", "notranslate")
_BULLET, _MAX_DEPTH, _SHORT_CELL = "- ", 150, 300


class MarkdownWriter:
    """Writes a tree as Markdown; links are resolved against the base URL."""

    def __init__(self, base: str = "") -> None:
        self._links = LinkResolver(base)

    def write(self, root: HtmlElement) -> str:
        """Return the tree as Markdown."""
        blocks: list[str] = []
        for block in self._blocks(root, 0):
            text = block.strip("\n")
            if text.strip() and (not blocks or text != blocks[-1]):
                blocks.append(text)
        return "\n\n".join(blocks)

    def _blocks(self, element: HtmlElement, depth: int) -> Iterator[str]:
        """Yield the blocks inside an element; inline content between them becomes paragraphs."""
        inline, previous = [flatten_whitespace(element.text)], ""
        for child in element:
            if depth < _MAX_DEPTH and _is_block(child):
                yield collapse_spaces("".join(inline))
                yield from self._block(child, depth + 1)
                inline, previous = [], ""
            else:
                inline.append(add_space_between(previous, render_inline(child, self._links)))
                previous = "" if child.tail else inline[-1]
            inline.append(flatten_whitespace(child.tail))
        yield collapse_spaces("".join(inline))

    def _block(self, element: HtmlElement, depth: int) -> Iterator[str]:
        tag = str(element.tag)
        if tag in _HEADINGS:
            yield self._heading(element)
        elif tag == "pre":
            yield _code_block(element)
        elif tag in ("ul", "ol", "menu", "dir"):
            yield "\n".join(self._list(element, depth))
        elif tag == "dl":
            yield "\n".join(self._definitions(element, depth))
        elif tag == "table":
            yield from self._table(element, depth)
        elif tag == "blockquote":
            yield "\n".join(f"> {line}".rstrip() for line in self._inner(element, depth).split("\n"))
        elif tag == "summary":
            yield f"**{render_line(element, self._links)}**"
        elif tag == "frame":
            yield self._frame(element)
        elif tag == "a":
            yield self._link_block(element, depth)
        elif tag != "hr":
            yield from self._blocks(element, depth)

    def _inner(self, element: HtmlElement, depth: int, gap: str = "\n\n") -> str:
        return gap.join(block for block in self._blocks(element, depth) if block.strip())

    def _heading(self, element: HtmlElement) -> str:
        text = render_line(element, self._links).replace("\n", " ")
        return f"{_HEADINGS[str(element.tag)]} {text}" if text else ""

    def _list(self, element: HtmlElement, depth: int) -> Iterator[str]:
        number = _parse_int(element.get("start", ""), 1)
        for child in element:
            if child.tag in ("ul", "ol"):
                # Many pages nest a list directly in a list, without an item around it.
                yield "  " + _indent("\n".join(self._list(child, depth + 1)), 2)
                continue
            text = self._inner(child, depth + 1, "\n") if depth < _MAX_DEPTH else render_line(child, self._links)
            if not text.strip():
                continue
            if element.tag == "ol":
                number = _parse_int(child.get("value", ""), number)
                marker = f"{number}. "
                number += 1
            else:
                marker = _BULLET
            yield marker + _indent(re.sub(r"^#+ ", "", text), len(marker)).lstrip()

    def _definitions(self, element: HtmlElement, depth: int) -> Iterator[str]:
        terms: list[str] = []
        # The groups of a definition list may be wrapped in divs.
        for child in element.iter("dt", "dd"):
            if next(child.iterancestors("dl"), None) is not element:
                continue
            if child.tag == "dt":
                terms.append(render_line(child, self._links).replace("\n", " ").removesuffix(":"))
                continue
            text = self._inner(child, depth + 1, "\n")
            if terms:
                gap = "\n  " if re.match(r"- |\d+\. |\||```", text) else " "
                yield f"- {' / '.join(f'**{term}**' for term in terms if term)}:{gap}{_indent(text, 2).lstrip()}"
                terms = []
            elif text:
                yield f"  {_indent(text, 2).lstrip()}"
        yield from (f"- **{term}**" for term in terms if term)

    def _table(self, element: HtmlElement, depth: int) -> Iterator[str]:
        for caption in (child for child in element if child.tag == "caption"):
            yield f"**{render_line(caption, self._links)}**" if render_line(caption, self._links) else ""
        if is_layout(element):
            yield from self._layout(element, depth)
            return
        yield render_table(element, lambda cell: self._inner(cell, depth + 1, " "))

    def _layout(self, element: HtmlElement, depth: int) -> Iterator[str]:
        """Yield the content of a layout table: short rows as one line each, everything else as blocks."""
        lines: list[str] = []
        for row in table_rows(element):
            cells = [text for cell in row if (text := self._inner(cell, depth + 1))]
            if all("\n" not in cell and len(cell) < _SHORT_CELL for cell in cells):
                lines += [" ".join(cells)] if cells else []
                continue
            yield "\n".join(lines)
            yield "\n\n".join(cells)
            lines = []
        yield "\n".join(lines)

    def _link_block(self, element: HtmlElement, depth: int) -> str:
        """Return blocks inside a link; their first line becomes the link."""
        url = self._links.resolve_once(element.get("href", ""))
        first, gap, rest = self._inner(element, depth).partition("\n")
        heading = re.match(r"(?:#+ )?", first)
        lead = heading.group() if heading else ""
        if not url or not first[len(lead) :] or "](" in first or first.startswith(("```", "|", ">")):
            return first + gap + rest
        return f"{lead}[{first[len(lead) :]}]({url}){gap}{rest}"

    def _frame(self, element: HtmlElement) -> str:
        url = self._links.resolve_once(element.get("src", ""))
        name = element.get("title") or element.get("name") or "frame"
        return f"[{' '.join(name.split())}]({url})" if url else ""


def _is_block(element: HtmlElement) -> bool:
    if element.tag in _CONTAINERS:
        return element.tag not in ("font", "label") or _contains_block(element)
    # An inline element around blocks is a block itself.
    return element.tag in ("a", "span", "b", "i", "strong", "em", "small", "big", "u") and _contains_block(element)


def _contains_block(element: HtmlElement) -> bool:
    return any(child.tag in _CONTAINERS and child.tag not in ("font", "label") for child in element.iterdescendants())


def _code_block(element: HtmlElement) -> str:
    code = "".join(_raw_text(element)).strip("\n").rstrip()
    if not code.strip():
        return ""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{_language(element)}\n{code}\n{fence}"


def _raw_text(element: HtmlElement) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        yield from ("\n",) if child.tag == "br" else _raw_text(child)
        yield child.tail or ""


def _language(element: HtmlElement) -> str:
    candidates = [element, *element.iter("code"), *list(element.iterancestors())[:2]]
    for candidate in candidates:
        found = re.search(_LANGUAGE, f"{candidate.get('class', '')} {candidate.get('data-lang', '')}".lower())
        if found and found[1] not in _NO_LANGUAGES:
            return found[1]
    return ""


def _indent(text: str, width: int) -> str:
    return text.replace("\n", "\n" + " " * width)


def _parse_int(text: str, default: int) -> int:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else default
