"""Results of several providers as one list: the best of each in turn, the same page once."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from urllib.parse import parse_qsl, urlencode, urlsplit

from tooling.web.search.types import Hit

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
# Added by advertisers and newsletters; the page is the same without them.
_TRACKING = ("utm_", "mc_", "fb_", "ga_", "hsa_")
_TRACKING_NAMES = frozenset(
    ("gclid", "fbclid", "msclkid", "dclid", "yclid", "igshid", "ref_src", "srsltid", "gad_source")
)


def merged(replies: Sequence[tuple[str, Sequence[Hit]]], count: int) -> tuple[Hit, ...]:
    """Return at most `count` results; what several providers found stands where the first of them put it."""
    kept: dict[str, Hit] = {}
    named = [[replace(hit, found_by=(name,)) for hit in hits] for name, hits in replies]
    for hit in _in_turns(named):
        key = canonical(hit.url)
        kept[key] = _united(kept[key], hit) if key in kept else hit
    return tuple(kept.values())[:count]


def canonical(url: str) -> str:
    """Return one spelling for all addresses of the same page, for comparison only."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.lower().removesuffix(_DEFAULT_PORTS.get(parts.scheme.lower(), "")).removeprefix("www.")
        fields = sorted(field for field in parse_qsl(parts.query, keep_blank_values=True) if not _is_tracking(field[0]))
    except ValueError:
        return url
    return f"{host}{parts.path.rstrip('/')}?{urlencode(fields)}"


def _is_tracking(name: str) -> bool:
    return name.lower().startswith(_TRACKING) or name.lower() in _TRACKING_NAMES


def _in_turns(lists: Sequence[Sequence[Hit]]) -> Iterable[Hit]:
    return (hit for hit in chain.from_iterable(zip_longest(*lists)) if hit is not None)


def _united(first: Hit, second: Hit) -> Hit:
    snippet = max(first.snippet, second.snippet, key=len)
    names = tuple(dict.fromkeys((*first.found_by, *second.found_by)))
    return replace(first, snippet=snippet, date=first.date or second.date, found_by=names)
