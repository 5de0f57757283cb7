"""The frame of a page: navigation, advertisements, boxes beside the text, known by their elements and names."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from lxml.html import HtmlElement

from tooling.web.extraction_size import link_share, size_of

# Words in class names and ids, after "someClass-name" has come apart: as a part of any name,
_PARTS = frozenset(
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
_NAMES = frozenset(
    """
    menu foot bottom top toolbar widget aside follow popular rank ranking signin login modal overlay skip jump print
    anchor chat feedback helpful avatar voting counter ticker breaking banner imprint mega editor
    """.split()  # noqa: SIM905 (quoted words would hide the list)
)
# and two of them side by side in one name.
_PAIRS = frozenset(
    """
    most-read also-like cross-sell up-sell site-header page-header site-head site-nav site-notice site-sub main-menu
    menu-toggle mega-menu post-menu post-form user-info comment-respond display-options topic-actions left-nav right-toc
    file-navigation repository-container jump-link cite-backlink more-stories read-more page-nav skip-link back-to
    recipe-jump recipe-print right-rail chat-widget breaking-ticker ranking-list online-list breaking-news
    """.split()  # noqa: SIM905 (quoted words would hide the list)
)
_QUALIFIERS = frozenset(("has", "with", "no", "without", "is", "open"))
_NEVER_FRAME = frozenset(("html", "body", "main", "article", "h1", "pre", "code"))
_BUTTONS = frozenset(("btn", "button", "cta"))
# Too much of the page to be its frame, whatever it is called.
_MOST_OF_PAGE, _MOST_OF_WORD = 0.5, 0.4
_LINKED = 0.65
_SHORT_FORM = 320


def frame_of(root: HtmlElement) -> list[HtmlElement]:
    """Return the elements that are frame; a name that most of the page goes by is no sign of one here."""
    whole = size_of(root)
    has_headings = sum(1 for _ in root.iter("h1")) > 1
    named: list[tuple[HtmlElement, frozenset[str]]] = []
    frame: list[HtmlElement] = []
    for element in root.iter("*"):
        if element.tag in _NEVER_FRAME:
            continue
        if _is_frame_by_kind(element, has_headings=has_headings):
            frame.append(element)
        elif signs := _signs(element):
            named.append((element, signs))
    common = _common_signs(named, whole * _MOST_OF_WORD)
    frame += [element for element, signs in named if not signs <= common]
    return [element for element in frame if size_of(element) <= whole * _MOST_OF_PAGE]


def _common_signs(named: Iterable[tuple[HtmlElement, frozenset[str]]], most: float) -> frozenset[str]:
    """Return the names that hold so much of the page together that they must be its content: small ads, for one."""
    sizes: dict[str, int] = {}
    for element, signs in named:
        for sign in signs:
            sizes[sign] = sizes.get(sign, 0) + size_of(element)
    return frozenset(sign for sign, size in sizes.items() if size > most)


def _is_frame_by_kind(element: HtmlElement, *, has_headings: bool) -> bool:
    tag = element.tag
    if tag == "nav" or element.get("rel") == "sponsored":
        return True
    if tag == "sup":
        return re.fullmatch(r"\s*\[[^\]]{1,12}\]\s*", element.text_content()) is not None
    if tag == "form":
        return size_of(element) < _SHORT_FORM
    if tag == "a":
        words = element.text_content().split()
        return len(words) <= 3 and bool(_BUTTONS & set(_words(element.get("class", "")))) and "ownload" not in words[:1]
    if tag not in ("header", "footer", "aside"):
        return False
    if any(parent.tag in ("article", "main") for parent in element.iterancestors()):
        return tag == "aside" and link_share(element) > _LINKED
    return tag != "header" or has_headings or next(element.iter("h1"), None) is None


def _signs(element: HtmlElement) -> frozenset[str]:
    """Return what in an element's class and id speaks for frame."""
    names = f"{element.get('class', '')} {element.get('id', '')}".split()
    return frozenset(sign for name in names for sign in _signs_in(name))


def _signs_in(name: str) -> Iterator[str]:
    words = _words(name)
    if not words or words[0] in _QUALIFIERS:
        return
    if len(words) == 1 and words[0] in _NAMES:
        yield words[0]
    yield from (word for word in words if word in _PARTS)
    yield from (pair for pair in map("-".join, pairwise(words)) if pair in _PAIRS)


def _words(name: str) -> list[str]:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
    return [word for word in re.split(r"[^a-z0-9]+", apart) if word]
