"""Remove boilerplate from a page: navigation, advertisements, sidebars, hidden elements."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from lxml.etree import Comment, ProcessingInstruction
from lxml.html import HtmlElement

from tooling.web.html.main_content import link_density, text_size
from tooling.web.html.visibility import StyleSheet, is_hidden

# Words in class names and ids (split at case changes and hyphens) that mark boilerplate: anywhere in a name,
_BOILERPLATE_WORDS = frozenset(
    """
    ad ads adslot adcontainer advert advertisement advertorial adthrive sponsored sponsor promo promotion taboola
    outbrain mediavine nav navbar navigation topnav topbar headerbar navbox breadcrumb breadcrumbs masthead linklist
    footer colophon copyright sidebar sharing sharedaddy share social relatedposts related recommended recommend
    recommendations recommendation trending mostread crosssell upsell newsletter subscribe subscription signup paywall
    popup lightbox pagination pager pagenavi respond disqus toc catlinks editsection headerlink copybtn clipboard
    zeroclipboard chatbot signature postprofile usercard votecell votelinks taglist filters facets usp disclosure
    """.split()  # noqa: SIM905 (eighty quoted words would hide the list)
)
# only as a complete name, because as parts they also describe position or appearance,
_BOILERPLATE_NAMES = frozenset(
    """
    menu foot bottom top toolbar widget aside follow popular rank ranking signin login modal overlay skip jump print
    anchor chat feedback helpful avatar voting counter ticker breaking banner imprint mega editor
    """.split()  # noqa: SIM905 (quoted words would hide the list)
)
# and as a pair of adjacent words in one name.
_BOILERPLATE_PAIRS = frozenset(
    """
    most-read also-like cross-sell up-sell site-header page-header site-head site-nav site-notice site-sub main-menu
    menu-toggle mega-menu post-menu post-form user-info comment-respond display-options topic-actions left-nav right-toc
    file-navigation repository-container jump-link cite-backlink more-stories read-more page-nav skip-link back-to
    recipe-jump recipe-print right-rail chat-widget breaking-ticker ranking-list online-list breaking-news
    """.split()  # noqa: SIM905 (quoted words would hide the list)
)
_QUALIFIERS = frozenset(("has", "with", "no", "without", "is", "open"))
_NEVER_BOILERPLATE = frozenset(("html", "body", "main", "article", "h1", "pre", "code"))
_BUTTONS = frozenset(("btn", "button", "cta"))
# An element, or all elements with the same marker, with more of the page than this are content, despite their name.
_MAX_ELEMENT_SHARE, _MAX_MARKER_SHARE = 0.5, 0.4
_LINKED = 0.65
_SHORT_FORM = 320


def find_boilerplate(root: HtmlElement) -> list[HtmlElement]:
    """Return the boilerplate elements; markers that cover most of the page are ignored."""
    page_size = text_size(root)
    has_headings = sum(1 for _ in root.iter("h1")) > 1
    marked: list[tuple[HtmlElement, frozenset[str]]] = []
    boilerplate: list[HtmlElement] = []
    for element in root.iter("*"):
        if element.tag in _NEVER_BOILERPLATE:
            continue
        if _is_boilerplate_tag(element, has_headings=has_headings):
            boilerplate.append(element)
        elif markers := _markers(element):
            marked.append((element, markers))
    common = _common_markers(marked, page_size * _MAX_MARKER_SHARE)
    boilerplate += [element for element, markers in marked if not markers <= common]
    return [element for element in boilerplate if text_size(element) <= page_size * _MAX_ELEMENT_SHARE]


def _common_markers(marked: Iterable[tuple[HtmlElement, frozenset[str]]], max_size: float) -> frozenset[str]:
    """Return the markers with so much text that it must be content, for example on a page of classified ads."""
    sizes: dict[str, int] = {}
    for element, markers in marked:
        for marker in markers:
            sizes[marker] = sizes.get(marker, 0) + text_size(element)
    return frozenset(marker for marker, size in sizes.items() if size > max_size)


def _is_boilerplate_tag(element: HtmlElement, *, has_headings: bool) -> bool:
    tag = element.tag
    if tag == "nav" or element.get("rel") == "sponsored":
        return True
    if tag == "sup":
        return re.fullmatch(r"\s*\[[^\]]{1,12}\]\s*", element.text_content()) is not None
    if tag == "form":
        return text_size(element) < _SHORT_FORM
    if tag == "a":
        words = element.text_content().split()
        return (
            len(words) <= 3
            and bool(_BUTTONS & set(_split_name(element.get("class", ""))))
            and "ownload" not in "".join(words[:1])
        )
    if tag not in ("header", "footer", "aside"):
        return False
    if any(parent.tag in ("article", "main") for parent in element.iterancestors()):
        return tag == "aside" and link_density(element) > _LINKED
    return tag != "header" or has_headings or next(element.iter("h1"), None) is None


def _markers(element: HtmlElement) -> frozenset[str]:
    """Return the boilerplate markers in an element's class and id."""
    names = f"{element.get('class', '')} {element.get('id', '')}".split()
    return frozenset(marker for name in names for marker in _markers_in(name))


def _markers_in(name: str) -> Iterator[str]:
    words = _split_name(name)
    if not words or words[0] in _QUALIFIERS:
        return
    if len(words) == 1 and words[0] in _BOILERPLATE_NAMES:
        yield words[0]
    yield from (word for word in words if word in _BOILERPLATE_WORDS)
    yield from (pair for pair in map("-".join, pairwise(words)) if pair in _BOILERPLATE_PAIRS)


def _split_name(name: str) -> list[str]:
    hyphenated = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
    return [word for word in re.split(r"[^a-z0-9]+", hyphenated) if word]


_NON_CONTENT_TAGS = frozenset(
    """
    script style svg iframe object embed applet canvas audio video map select option datalist textarea meter progress
    param source track link meta base head title
    """.split()  # noqa: SIM905 (quoted words would hide the list)
)
_NON_CONTENT_ROLES = frozenset(
    ("navigation", "banner", "contentinfo", "search", "dialog", "alertdialog", "menu", "menubar", "tablist", "toolbar")
)
_HIDDEN_CLASSES = frozenset(
    """
    sr-only visually-hidden visuallyhidden screen-reader-text screen-reader-only element-invisible d-none u-hidden
    is-hidden display-none offscreen off-screen show-on-focus
    """.split()  # noqa: SIM905 (quoted words would hide the list)
)
_CONSENT = r"cookie|consent|gdpr|ccpa|onetrust|didomi|usercentrics|cmp-?(?:banner|container)|qc-cmp"
_LIST_TAGS = ("ul", "ol", "div", "td", "p", "section", "table")
_MAX_PRUNED_SHARE = 0.5
_LINK_LIST_SHARE, _ALL_LINKED = 0.65, 0.8
_LONG_TEXT = 160
_MENU_ENTRY_CHARS = 20


class Pruner:
    """Removes non-content from a tree; `hidden_count` is how many hidden elements it removed."""

    def __init__(self, root: HtmlElement) -> None:
        self._root = root
        self.hidden_count = 0

    def prune(self) -> None:
        """Remove hidden elements and boilerplate."""
        self._drop_hidden()
        self._drop(element for element in self._root.iter("*") if _is_consent(element))
        self._drop(element for element in self._root.iter("*") if _is_non_content(element))
        self._drop_noscript()
        self._drop(find_boilerplate(self._root))

    def prune_link_lists(self, root: HtmlElement) -> None:
        """Remove link lists inside the content, unless they are most of it."""
        blocks = [block for block in root.iter(*_LIST_TAGS) if block is not root and _is_link_list(block)]
        known = set(blocks)
        size = sum(text_size(block) for block in blocks if known.isdisjoint(block.iterancestors()))
        if size > text_size(root) * _MAX_PRUNED_SHARE:
            blocks = [block for block in blocks if _is_menu(block)]
            if sum(map(text_size, blocks)) > text_size(root) * _MAX_PRUNED_SHARE:
                return
        self._drop(blocks)

    def _drop_hidden(self) -> None:
        sheet = StyleSheet()
        for style in self._root.iter("style"):
            sheet.parse(style.text_content())
        for comment in list(self._root.iter(Comment, ProcessingInstruction)):
            self.hidden_count += _is_prose(str(comment.text or ""))
            _remove(comment)
        dropped = self._drop(element for element in self._root.iter("*") if _is_hidden_element(element, sheet))
        self.hidden_count += sum(1 for element in dropped if text_size(element))

    def _drop_noscript(self) -> None:
        """Remove noscript elements unless the page has hardly any other text."""
        fallbacks = list(self._root.iter("noscript"))
        if text_size(self._root) - sum(map(text_size, fallbacks)) > _LONG_TEXT:
            self._drop(fallbacks)

    def _drop(self, elements: Iterable[HtmlElement]) -> list[HtmlElement]:
        """Remove elements; return those that were not inside another one."""
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
    """Remove an element from its tree but keep the text after it."""
    parent, previous = element.getparent(), element.getprevious()
    if parent is None:
        return
    if tail := element.tail:
        if previous is None:
            parent.text = (parent.text or "") + tail
        else:
            previous.tail = (previous.tail or "") + tail
        element.tail = None
    parent.remove(element)


def _is_non_content(element: HtmlElement) -> bool:
    tag = element.tag
    if tag == "button":
        # The questions of an FAQ accordion are headings with a button inside.
        return next(element.iterancestors("h2", "h3", "h4", "h5", "h6", "summary", "dt"), None) is None
    if tag in _NON_CONTENT_TAGS or element.get("role", "").lower() in _NON_CONTENT_ROLES:
        return True
    if tag == "input":
        return element.get("type", "").lower() != "checkbox"
    return element.get("aria-hidden") == "true" and text_size(element) < _LONG_TEXT


def _is_consent(element: HtmlElement) -> bool:
    names = f"{element.get('class', '')} {element.get('id', '')}".lower()
    if not re.search(_CONSENT, names) or element.tag in ("html", "body"):
        return False
    return next(element.iter("main", "article", "h1"), None) is None


def _is_hidden_element(element: HtmlElement, sheet: StyleSheet) -> bool:
    tag = str(element.tag)
    # A click reveals inactive tabs, so they are not hidden text.
    if tag in ("body", "html") or element.get("role") == "tabpanel" or element.get("hidden") == "until-found":
        return False
    if tag == "template" or (tag == "dialog" and "open" not in element.attrib):
        return True
    if not _HIDDEN_CLASSES.isdisjoint(element.get("class", "").split()):
        return True
    return is_hidden(tag, {str(name): str(value) for name, value in element.attrib.items()}, sheet)


def _is_prose(comment: str) -> bool:
    """Return whether a comment contains prose rather than conditional HTML or template markup."""
    return len(comment.split()) > 3 and not comment.lstrip().startswith(("[if", "<![", "#", "/"))


def _is_link_list(block: HtmlElement) -> bool:
    links = list(block.iter("a"))
    if len(links) < 3 or link_density(block) < _LINK_LIST_SHARE:
        return False
    if next(block.iter("pre", "h1", "dl", "img"), None) is not None:
        return False
    return max(map(text_size, links)) < _LONG_TEXT


def _is_menu(block: HtmlElement) -> bool:
    """Return whether a link list has only a word or two in each link."""
    longest = max(len(link.text_content()) for link in block.iter("a"))
    return link_density(block) > _ALL_LINKED and longest <= _MENU_ENTRY_CHARS
