"""Extract all visible text of an HTML page in one pass, without a tree: fast, small, accepts anything."""

import re
from collections.abc import Mapping
from dataclasses import field
from urllib.parse import urljoin

from lxml import etree

from tooling.contract.fast_dataclass import dataclass
from tooling.web.html.inline import LinkBudget
from tooling.web.html.visibility import StyleSheet, is_hidden

_CHUNK = 65_536
_SKIPPED_TAGS = frozenset(
    """
    script style noscript template svg math iframe object canvas audio video select datalist head
    """.split()  # noqa: SIM905 (quoted words would hide the list)
)
_BLOCKS = frozenset(
    """
    address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset figcaption figure
    footer form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol option p pre section summary table tbody
    textarea tfoot thead tr ul
    """.split()  # noqa: SIM905 (forty quoted words would hide the list)
)
_PARAGRAPH_TAGS = frozenset(
    """
    article blockquote dl figure h1 h2 h3 h4 h5 h6 hr main ol p pre section table ul
    """.split()  # noqa: SIM905 (quoted words would hide the list)
)
_LISTS = frozenset(("ul", "ol", "menu", "dir"))
_MAX_LIST_DEPTH = 10
# The parser does not end the head at newer elements such as <main>, so the writer does.
HEAD_TAGS = frozenset(("base", "link", "meta", "noscript", "object", "script", "style", "template", "title"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainPage:
    """The text and metadata of a page; `hidden_count` is how many hidden elements were removed."""

    text: str
    title: str = ""
    language: str = ""
    hidden_count: int = 0


def html_to_text(html: str, *, url: str = "") -> PlainPage:
    """Return the visible text of a page, with headings, lists, links, tables and code as in Markdown."""
    writer = _TextTarget(url=url)
    # The type stubs require methods that lxml treats as optional.
    parser = etree.HTMLParser(target=writer, encoding="utf-8", huge_tree=True)  # type: ignore[call-overload]
    try:
        for at in range(0, len(html), _CHUNK):
            parser.feed(html[at : at + _CHUNK].encode("utf-8", "replace"))
        parser.close()
    except etree.XMLSyntaxError:
        # lxml raises at the end of a page without elements; keep the text so far.
        pass
    return PlainPage(
        text=writer.text(),
        title=" ".join("".join(writer.title).split()),
        language=writer.language,
        hidden_count=writer.hidden_count,
    )


@dataclass(slots=True)
class _TextTarget:
    """A parser target that writes the visible text in document order."""

    url: str = ""
    title: list[str] = field(default_factory=list)
    language: str = ""
    hidden_count: int = 0
    _parts: list[str] = field(default_factory=list)
    _sheet: StyleSheet = field(default_factory=StyleSheet)
    _css: list[str] = field(default_factory=list)
    _skipping: list[str] = field(default_factory=list)
    _open_counts: dict[str, int] = field(default_factory=dict)
    _links: list[tuple[str, int]] = field(default_factory=list)
    _base: str = ""
    _link_budget: LinkBudget = field(default_factory=LinkBudget)
    _pending_newlines: int = 0
    _has_space: bool = True
    _is_after_marker: bool = False
    _open_cells: int = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._open_counts[tag] = self._open_counts.get(tag, 0) + 1
        if tag == "html":
            self.language = attributes.get("lang", "") or attributes.get("xml:lang", "")
        elif tag == "base" and not self._base:
            self._base = self._resolve_url(self.url, attributes.get("href", ""))
        if self._skipping == ["head"] and tag not in HEAD_TAGS:
            self._skipping.clear()
        if self._skipping or tag in _SKIPPED_TAGS:
            self._skipping.append(tag)
        elif tag != "body" and is_hidden(tag, attributes, self._sheet):
            self.hidden_count += tag != "input"
            self._skipping.append(tag)
        else:
            self._open_tag(tag, attributes)

    def end(self, tag: str) -> None:
        self._open_counts[tag] = self._open_counts.get(tag, 0) - 1
        if tag == "style":
            self._sheet.parse("".join(self._css))
            self._css.clear()
        if self._skipping:
            self._skipping.pop()
        else:
            self._close_tag(tag)

    def data(self, text: str) -> None:
        if self._open_counts.get("style"):
            self._css.append(text)
        elif self._open_counts.get("title") and not self._open_counts.get("svg"):
            self.title.append(text)
        elif not self._skipping:
            self._write(text)

    def comment(self, text: str) -> None:
        # Conditional and template comments are common; prose in a comment is hidden text.
        self.hidden_count += len(text.split()) > 3 and not text.lstrip().startswith(("[if", "#", "/", "!["))

    def close(self) -> None:
        self._pending_newlines = 0

    def text(self) -> str:
        text = "".join(self._parts)
        self._parts.clear()
        return re.sub(r"\n{3,}", "\n\n", re.sub(r"(?<![ \t])[ \t]++(?=\n)", "", text)).strip()

    def _open_tag(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag in _BLOCKS:
            self._break(tag)
        if tag == "pre":
            self._write_marker("```\n")
        elif tag == "code" and not self._open_counts.get("pre"):
            self._write_marker("`", glued=True)
        elif tag == "li":
            depth = sum(self._open_counts.get(name, 0) for name in _LISTS)
            self._write_marker("  " * (min(depth, _MAX_LIST_DEPTH) - 1) + "- ")
        elif len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            self._write_marker("#" * int(tag[1]) + " ")
        elif tag in ("td", "th"):
            self._open_cells += 1
            self._write_marker("| ")
        elif tag == "hr":
            self._write_marker("---")
        elif tag == "a":
            self._links.append((attributes.get("href", "").strip(), len(self._parts)))
        elif tag == "img" and attributes.get("alt", "").strip():
            self._write(f"[image: {' '.join(attributes['alt'].split())}]")

    def _close_tag(self, tag: str) -> None:
        if tag == "pre":
            self._parts.append("```" if self._parts[-1].endswith("\n") else "\n```")
        elif tag == "code" and not self._open_counts.get("pre"):
            self._parts.append("`")
        elif tag in ("td", "th"):
            self._open_cells -= 1
            self._write(" ")
        elif tag == "tr":
            self._parts.append("|")
        elif tag == "a" and self._links:
            self._link(*self._links.pop())
        if tag in _BLOCKS:
            self._is_after_marker = False
            self._break(tag)

    def _link(self, href: str, at: int) -> None:
        words = "".join(self._parts[at:])
        if not href or href.startswith(("#", "javascript:", "data:")) or not words.strip() or "\n" in words.strip():
            return
        url = self._resolve_url(self._base or self.url, href)
        if not self._link_budget.reserve(url):
            return
        lead = words[: len(words) - len(words.lstrip())]
        self._parts[at:] = [f"{lead}[{words.strip()}]({url.replace(' ', '%20').replace(')', '%29')})"]

    def _resolve_url(self, base: str, href: str) -> str:
        try:
            return urljoin(base, href)
        except ValueError:
            return href

    def _write(self, text: str) -> None:
        if self._open_counts.get("pre"):
            self._flush()
            self._parts.append(text)
            self._has_space = self._is_after_marker = False
            return
        words = " ".join(text.split())
        if not words:
            if text and not self._pending_newlines and not self._has_space:
                self._parts.append(" ")
                self._has_space = True
            return
        has_lead = text[0].isspace() and not self._pending_newlines and not self._has_space
        self._flush()
        has_tail = text[-1].isspace()
        self._is_after_marker = False
        self._parts.append(f"{' ' if has_lead else ''}{words}{' ' if has_tail else ''}")
        self._has_space = has_tail

    def _write_marker(self, text: str, *, glued: bool = False) -> None:
        self._flush()
        self._parts.append(text)
        self._has_space = not glued
        self._is_after_marker = True

    def _break(self, tag: str) -> None:
        if self._open_cells and tag != "tr":
            # A table row is one line.
            self._write(" ")
        elif not self._is_after_marker or tag in ("hr", "li", "tr"):
            # The text after a list or heading marker stays on its line.
            self._pending_newlines = max(
                self._pending_newlines, 2 if tag in _PARAGRAPH_TAGS and not self._open_counts.get("li") else 1
            )

    def _flush(self) -> None:
        if self._pending_newlines:
            if self._parts:
                self._parts.append("\n" * self._pending_newlines)
            self._pending_newlines = 0
            self._has_space = True
