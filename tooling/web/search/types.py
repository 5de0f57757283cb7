"""What is asked of a search provider and what it answers, the same for all of them."""

from collections.abc import Mapping

from tooling.contract.fast_dataclass import dataclass
from tooling.web.html.hidden_unicode import strip_invisible
from tooling.web.search.errors import SearchFault

_TITLE_CHARS = 300
_SNIPPET_CHARS = 1200
_URL_CHARS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """The words to look for and the most results wanted."""

    text: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAccess:
    """Where a provider is and the key it wants."""

    url: str
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One result; `found_by` names the providers that had it."""

    title: str
    url: str
    snippet: str = ""
    date: str = ""
    found_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderReply:
    """What one provider found, best first, and what it costs."""

    hits: tuple[SearchHit, ...]
    cost_usd: float = 0.0


def build_hit(*, title: object, url: object, snippet: object, date: object = None) -> SearchHit | None:
    """Return a result made of strangers' values, cleaned and cut to size; None without an address of the web."""
    place = _text(url).strip()
    if not place.lower().startswith(("http://", "https://")) or not place.isprintable() or " " in place:
        return None
    if len(place) > _URL_CHARS:
        return None
    return SearchHit(
        title=_clean_line(title)[:_TITLE_CHARS] or place,
        url=place,
        snippet=_clean_line(snippet)[:_SNIPPET_CHARS],
        date=_clean_line(date)[:40],
    )


def _clean_line(value: object) -> str:
    """Return a text on one line, without anything that cannot be seen."""
    visible, _ = strip_invisible(_text(value))
    return " ".join(visible.split())


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def objects_at(data: object, *path: str) -> list[Mapping[str, object]]:
    """Return the objects of the list at `path`; an answer without such a list is none."""
    for name in path:
        data = data.get(name) if isinstance(data, Mapping) else None
    if not isinstance(data, list):
        raise SearchFault("malformed", f"there is no list of {path[-1]}")
    return [item for item in data if isinstance(item, Mapping)]


def number_at(data: object, *path: str) -> float | None:
    """Return the number at `path`, or None."""
    for name in path:
        data = data.get(name) if isinstance(data, Mapping) else None
    return float(data) if isinstance(data, (int, float)) and not isinstance(data, bool) else None
