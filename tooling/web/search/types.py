"""Queries and results that all search providers share."""

from collections.abc import Mapping

from tooling.contract.fast_dataclass import dataclass
from tooling.web.html.hidden_unicode import strip_invisible
from tooling.web.search.errors import SearchFault

_TITLE_CHARS = 300
_SNIPPET_CHARS = 1200
_URL_CHARS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """The search terms and the maximum number of results."""

    text: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAccess:
    """A provider's base URL and API key."""

    url: str
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One result; `found_by` names the providers that returned it."""

    title: str
    url: str
    snippet: str = ""
    date: str = ""
    found_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderReply:
    """The results of one provider, best first, and their cost."""

    hits: tuple[SearchHit, ...]
    cost_usd: float = 0.0


def build_hit(*, title: object, url: object, snippet: object, date: object = None) -> SearchHit | None:
    """Build a result from untrusted values, sanitized and truncated; None without a valid http(s) URL."""
    link = _text(url).strip()
    if not link.lower().startswith(("http://", "https://")) or not link.isprintable() or " " in link:
        return None
    if len(link) > _URL_CHARS:
        return None
    return SearchHit(
        title=_clean_line(title)[:_TITLE_CHARS] or link,
        url=link,
        snippet=_clean_line(snippet)[:_SNIPPET_CHARS],
        date=_clean_line(date)[:40],
    )


def _clean_line(value: object) -> str:
    """Return a text on one line, without invisible characters."""
    visible, _ = strip_invisible(_text(value))
    return " ".join(visible.split())


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def objects_at(data: object, *path: str) -> list[Mapping[str, object]]:
    """Return the objects in the list at `path`; raise SearchFault if there is no list."""
    for name in path:
        data = data.get(name) if isinstance(data, Mapping) else None
    if not isinstance(data, list):
        raise SearchFault("malformed", no_list(path[-1]))
    return [item for item in data if isinstance(item, Mapping)]


def number_at(data: object, *path: str) -> float | None:
    """Return the number at `path`, or None."""
    for name in path:
        data = data.get(name) if isinstance(data, Mapping) else None
    return float(data) if isinstance(data, (int, float)) and not isinstance(data, bool) else None


def no_list(name: str) -> str:
    """Return the detail for a reply without its list of results."""
    return f"it has no list '{name}'"
