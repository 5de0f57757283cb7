"""The frame of a page: navigation, advertisements, boxes beside the text, known by their elements and names."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from lxml.etree import Comment, ProcessingInstruction
from lxml.html import HtmlElement

from tooling.web.html.main_content import link_density, text_size
from tooling.web.html.visibility import StyleSheet, is_hidden

# Words in class names and ids, after "someClass-name" has come apart: as a part of any name,
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
# only as a whole name: as parts they also say where something is or how it looks,
_BOILERPLATE_NAMES = frozenset(
    """
    menu foot bottom top toolbar widget aside follow popular rank ranking signin login modal overlay skip jump print
    anchor chat feedback helpful avatar voting counter ticker breaking banner imprint mega editor
    """.split()  # noqa: SIM905 (quoted words would hide the list)
)
# and two of them side by side in one name.
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
# Too much of the page to be its frame, whatever it is called.
_MOST_OF_PAGE, _MOST_OF_WORD = 0.5, 0.4
_LINKED = 0.65
_SHORT_FORM = 320


def find_boilerplate(root: HtmlElement) -> list[HtmlElement]:
    """Return the elements that are frame; a name that most of the page goes by is no sign of one here."""
    whole = text_size(root)
    has_headings = sum(1 for _ in root.iter("h1")) > 1
    named: list[tuple[HtmlElement, frozenset[str]]] = []
    frame: list[HtmlElement] = []
    for element in root.iter("*"):
        if element.tag in _NEVER_BOILERPLATE:
            continue
        if _is_boilerplate_tag(element, has_headings=has_headings):
            frame.append(element)
        elif signs := _markers(element):
            named.append((element, signs))
    common = _common_markers(named, whole * _MOST_OF_WORD)
    frame += [element for element, signs in named if not signs <= common]
    return [element for element in frame if text_size(element) <= whole * _MOST_OF_PAGE]


def _common_markers(named: Iterable[tuple[HtmlElement, frozenset[str]]], most: float) -> frozenset[str]:
    """Return the names that hold so much of the page together that they must be its content: small ads, for one."""
    sizes: dict[str, int] = {}
    for element, signs in named:
        for sign in signs:
            sizes[sign] = sizes.get(sign, 0) + text_size(element)
    return frozenset(sign for sign, size in sizes.items() if size > most)


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
            and "ownload" not in words[:1]
        )
    if tag not in ("header", "footer", "aside"):
        return False
    if any(parent.tag in ("article", "main") for parent in element.iterancestors()):
        return tag == "aside" and link_density(element) > _LINKED
    return tag != "header" or has_headings or next(element.iter("h1"), None) is None


def _markers(element: HtmlElement) -> frozenset[str]:
    """Return what in an element's class and id speaks for frame."""
    names = f"{element.get('class', '')} {element.get('id', '')}".split()
    return frozenset(sign for name in names for sign in _markers_in(name))


def _markers_in(name: str) -> Iterator[str]:
    words = _split_name(name)
    if not words or words[0] in _QUALIFIERS:
        return
    if len(words) == 1 and words[0] in _BOILERPLATE_NAMES:
        yield words[0]
    yield from (word for word in words if word in _BOILERPLATE_WORDS)
    yield from (pair for pair in map("-".join, pairwise(words)) if pair in _BOILERPLATE_PAIRS)


def _split_name(name: str) -> list[str]:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
    return [word for word in re.split(r"[^a-z0-9]+", apart) if word]


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
_LARGEST_PRUNED_SHARE = 0.5
_LINK_LIST_SHARE, _ALL_LINKED = 0.65, 0.8
_LONG_WORDS = 160
_MENU_WORD = 20


class Pruner:
    """Takes away from a tree what is not content; `hidden_count` is how many hidden pieces it found."""

    def __init__(self, root: HtmlElement) -> None:
        self._root = root
        self.hidden_count = 0

    def prune(self) -> None:
        """Take away everything that is certain by itself."""
        self._drop_hidden()
        self._drop(element for element in self._root.iter("*") if _is_consent(element))
        self._drop(element for element in self._root.iter("*") if _is_non_content(element))
        self._drop_noscript()
        self._drop(find_boilerplate(self._root))

    def prune_link_lists(self, root: HtmlElement) -> None:
        """Take away lists of links inside the content, unless they are the content."""
        blocks = [block for block in root.iter(*_LIST_TAGS) if block is not root and _is_link_list(block)]
        known = set(blocks)
        inside = sum(text_size(block) for block in blocks if known.isdisjoint(block.iterancestors()))
        if inside > text_size(root) * _LARGEST_PRUNED_SHARE:
            blocks = [block for block in blocks if _is_menu(block)]
            if sum(map(text_size, blocks)) > text_size(root) * _LARGEST_PRUNED_SHARE:
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
        """Keep what stands in for scripts only on pages that are nothing without them."""
        fallbacks = list(self._root.iter("noscript"))
        if text_size(self._root) - sum(map(text_size, fallbacks)) > _LONG_WORDS:
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


def _is_non_content(element: HtmlElement) -> bool:
    tag = element.tag
    if tag == "button":
        # Questions that open when they are clicked are headings with a button inside.
        return next(element.iterancestors("h2", "h3", "h4", "h5", "h6", "summary", "dt"), None) is None
    if tag in _NON_CONTENT_TAGS or element.get("role", "").lower() in _NON_CONTENT_ROLES:
        return True
    if tag == "input":
        return element.get("type", "").lower() != "checkbox"
    return element.get("aria-hidden") == "true" and text_size(element) < _LONG_WORDS


def _is_consent(element: HtmlElement) -> bool:
    names = f"{element.get('class', '')} {element.get('id', '')}".lower()
    if not re.search(_CONSENT, names) or element.tag in ("html", "body"):
        return False
    return next(element.iter("main", "article", "h1"), None) is None


def _is_hidden_element(element: HtmlElement, sheet: StyleSheet) -> bool:
    tag = str(element.tag)
    # A click shows the other tabs of a page, unlike what nobody can get to see.
    if tag in ("body", "html") or element.get("role") == "tabpanel" or element.get("hidden") == "until-found":
        return False
    if tag == "template" or (tag == "dialog" and "open" not in element.attrib):
        return True
    if not _HIDDEN_CLASSES.isdisjoint(element.get("class", "").split()):
        return True
    return is_hidden(tag, {str(name): str(value) for name, value in element.attrib.items()}, sheet)


def _is_prose(comment: str) -> bool:
    """Say whether a comment could be meant for a reader: not one for old browsers or templates."""
    return len(comment.split()) > 3 and not comment.lstrip().startswith(("[if", "<![", "#", "/"))


def _is_link_list(block: HtmlElement) -> bool:
    links = list(block.iter("a"))
    if len(links) < 3 or link_density(block) < _LINK_LIST_SHARE:
        return False
    if next(block.iter("pre", "h1", "dl", "img"), None) is not None:
        return False
    return max(map(text_size, links)) < _LONG_WORDS


def _is_menu(block: HtmlElement) -> bool:
    """Say whether a list of links has nothing but a word or two in each."""
    longest = max(len(link.text_content()) for link in block.iter("a"))
    return link_density(block) > _ALL_LINKED and longest <= _MENU_WORD
