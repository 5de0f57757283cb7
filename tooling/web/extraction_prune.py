"""What is on a page and not written for its readers: scripts, what a browser hides, consent, lists of links."""

import re
from collections.abc import Iterable

from lxml.etree import Comment, ProcessingInstruction
from lxml.html import HtmlElement

from tooling.web.extraction_size import link_share, size_of
from tooling.web.html.boilerplate import frame_of
from tooling.web.html.visibility import StyleSheet, is_hidden

_NEVER = frozenset(
    """
    script style svg iframe object embed applet canvas audio video map select option datalist textarea meter progress
    param source track link meta base head title
    """.split()  # noqa: SIM905 (quoted words would hide the list)
)
_NEVER_ROLES = frozenset(
    ("navigation", "banner", "contentinfo", "search", "dialog", "alertdialog", "menu", "menubar", "tablist", "toolbar")
)
_UNSEEN_CLASSES = frozenset(
    """
    sr-only visually-hidden visuallyhidden screen-reader-text screen-reader-only element-invisible d-none u-hidden
    is-hidden display-none offscreen off-screen show-on-focus
    """.split()  # noqa: SIM905 (quoted words would hide the list)
)
_CONSENT = r"cookie|consent|gdpr|ccpa|onetrust|didomi|usercentrics|cmp-?(?:banner|container)|qc-cmp"
_LIST_TAGS = ("ul", "ol", "div", "td", "p", "section", "table")
_MOST_OF_PAGE = 0.5
_LINKED, _ALL_LINKED = 0.65, 0.8
_LONG_WORDS = 160
_MENU_WORD = 20


class Pruner:
    """Takes away from a tree what is not content; `hidden_count` is how many hidden pieces it found."""

    def __init__(self, root: HtmlElement) -> None:
        self._root = root
        self.hidden_count = 0

    def prune(self) -> None:
        """Take away everything that is certain by itself."""
        self._drop_unseen()
        self._drop(element for element in self._root.iter("*") if _is_consent(element))
        self._drop(element for element in self._root.iter("*") if _is_never(element))
        self._drop_noscript()
        self._drop(frame_of(self._root))

    def prune_link_lists(self, root: HtmlElement) -> None:
        """Take away lists of links inside the content, unless they are the content."""
        blocks = [block for block in root.iter(*_LIST_TAGS) if block is not root and _is_link_list(block)]
        known = set(blocks)
        inside = sum(size_of(block) for block in blocks if known.isdisjoint(block.iterancestors()))
        if inside > size_of(root) * _MOST_OF_PAGE:
            blocks = [block for block in blocks if _is_menu(block)]
            if sum(map(size_of, blocks)) > size_of(root) * _MOST_OF_PAGE:
                return
        self._drop(blocks)

    def _drop_unseen(self) -> None:
        sheet = StyleSheet()
        for style in self._root.iter("style"):
            sheet.read(style.text_content())
        for comment in list(self._root.iter(Comment, ProcessingInstruction)):
            self.hidden_count += _speaks(str(comment.text or ""))
            _remove(comment)
        dropped = self._drop(element for element in self._root.iter("*") if _is_unseen(element, sheet))
        self.hidden_count += sum(1 for element in dropped if size_of(element))

    def _drop_noscript(self) -> None:
        """Keep what stands in for scripts only on pages that are nothing without them."""
        fallbacks = list(self._root.iter("noscript"))
        if size_of(self._root) - sum(map(size_of, fallbacks)) > _LONG_WORDS:
            self._drop(fallbacks)

    def _drop(self, elements: Iterable[HtmlElement]) -> list[HtmlElement]:
        """Take elements away; return those that were still there and not inside another of them."""
        dropped: list[HtmlElement] = []
        inside: set[HtmlElement] = set()
        for element in list(elements):
            if element is self._root or element in inside:
                continue
            inside.update(element.iter())
            dropped.append(element)
            _remove(element)
        return dropped


def _remove(element: HtmlElement) -> None:
    """Take an element out of its tree; the text behind it stays."""
    parent, before = element.getparent(), element.getprevious()
    if parent is None:
        return
    if tail := element.tail:
        if before is None:
            parent.text = (parent.text or "") + tail
        else:
            before.tail = (before.tail or "") + tail
        element.tail = None
    parent.remove(element)


def _is_never(element: HtmlElement) -> bool:
    tag = element.tag
    if tag == "button":
        # Questions that open when they are clicked are headings with a button inside.
        return next(element.iterancestors("h2", "h3", "h4", "h5", "h6", "summary", "dt"), None) is None
    if tag in _NEVER or element.get("role", "").lower() in _NEVER_ROLES:
        return True
    if tag == "input":
        return element.get("type", "").lower() != "checkbox"
    return element.get("aria-hidden") == "true" and size_of(element) < _LONG_WORDS


def _is_consent(element: HtmlElement) -> bool:
    names = f"{element.get('class', '')} {element.get('id', '')}".lower()
    if not re.search(_CONSENT, names) or element.tag in ("html", "body"):
        return False
    return next(element.iter("main", "article", "h1"), None) is None


def _is_unseen(element: HtmlElement, sheet: StyleSheet) -> bool:
    tag = str(element.tag)
    # A click shows the other tabs of a page, unlike what nobody can get to see.
    if tag in ("body", "html") or element.get("role") == "tabpanel" or element.get("hidden") == "until-found":
        return False
    if tag == "template" or (tag == "dialog" and "open" not in element.attrib):
        return True
    if not _UNSEEN_CLASSES.isdisjoint(element.get("class", "").split()):
        return True
    return is_hidden(tag, {str(name): str(value) for name, value in element.attrib.items()}, sheet)


def _speaks(comment: str) -> bool:
    """Say whether a comment could be meant for a reader: not one for old browsers or templates."""
    return len(comment.split()) > 3 and not comment.lstrip().startswith(("[if", "<![", "#", "/"))


def _is_link_list(block: HtmlElement) -> bool:
    links = list(block.iter("a"))
    if len(links) < 3 or link_share(block) < _LINKED:
        return False
    if next(block.iter("pre", "h1", "dl", "img"), None) is not None:
        return False
    return max(map(size_of, links)) < _LONG_WORDS


def _is_menu(block: HtmlElement) -> bool:
    """Say whether a list of links has nothing but a word or two in each."""
    longest = max(len(link.text_content()) for link in block.iter("a"))
    return link_share(block) > _ALL_LINKED and longest <= _MENU_WORD
