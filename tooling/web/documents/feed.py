"""Render feeds (RSS, Atom, RDF) as text: title, date, link and summary of every entry."""

from collections.abc import Iterator

from lxml import etree

from tooling.contract.fast_dataclass import dataclass
from tooling.web.html.plain_text import html_to_text

MAX_ENTRIES = 200
MAX_SUMMARY_CHARS = 2000
_DATE_TAGS = ("pubDate", "published", "updated", "date", "modified", "issued")
_SUMMARY_TAGS = ("encoded", "content", "description", "summary", "subtitle", "tagline")


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A feed as text, with its metadata."""

    text: str
    title: str = ""
    date: str = ""
    language: str = ""
    hidden_count: int = 0


def read_feed(data: bytes, *, url: str = "") -> Feed | None:
    """Parse a feed, or return None if it is not one."""
    # No external entities (XXE) and no entity expansion (billion laughs).
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    if root is None or _name(root) not in ("rss", "feed", "RDF"):
        return None
    channel = next((child for child in root if _name(child) == "channel"), root)
    entries = [node for parent in {root, channel} for node in parent if _name(node) in ("item", "entry")]
    shown = [_format_entry(node, url) for node in entries[:MAX_ENTRIES]]
    title = _text(channel, ("title",))
    more = f"\n\n[{len(entries) - MAX_ENTRIES} more entries]" if len(entries) > MAX_ENTRIES else ""
    description = html_to_text(_text(channel, _SUMMARY_TAGS), url=url).text[:MAX_SUMMARY_CHARS]
    return Feed(
        text="\n\n".join(part for part in (description, *(text for text, _ in shown)) if part) + more,
        title=title,
        date=_text(channel, ("lastBuildDate", *_DATE_TAGS)),
        language=_text(channel, ("language",)) or (root.get("{http://www.w3.org/XML/1998/namespace}lang") or ""),
        hidden_count=sum(hidden for _, hidden in shown),
    )


def _format_entry(node: etree._Element, url: str) -> tuple[str, int]:
    summary = html_to_text(_text(node, _SUMMARY_TAGS), url=url)
    body = summary.text
    if len(body) > MAX_SUMMARY_CHARS:
        body = f"{body[:MAX_SUMMARY_CHARS]} …"
    lines = (f"## {_text(node, ('title',)) or '(no title)'}", _text(node, _DATE_TAGS), _link(node), body)
    return "\n".join(line for line in lines if line), summary.hidden_count


def _link(node: etree._Element) -> str:
    links = [child for child in node if _name(child) == "link"]
    for link in links:
        if link.get("href") and link.get("rel", "alternate") == "alternate":
            return str(link.get("href")).strip()
    return next((text for link in links if (text := " ".join("".join(_texts(link)).split()))), "")


def _text(node: etree._Element, names: tuple[str, ...]) -> str:
    for name in names:
        for child in node:
            if _name(child) == name and (text := " ".join("".join(_texts(child)).split())):
                return text
    return ""


def _texts(node: etree._Element) -> Iterator[str]:
    yield from (str(part) for part in node.itertext() if part)


def _name(node: etree._Element) -> str:
    return etree.QName(node).localname if isinstance(node.tag, str) else ""
