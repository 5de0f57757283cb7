"""Asking the providers: in order, each with its own clock and one retry, the next one when one fails."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import field, replace
from itertools import chain, zip_longest
from urllib.parse import parse_qsl, urlencode, urlsplit

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolError, ToolMeta, ToolResult
from tooling.web.http.messages import WebFault, WebRequest, WebResponse
from tooling.web.page import wrap_untrusted
from tooling.web.search.errors import SearchFault, from_web_fault
from tooling.web.search.providers import PROVIDERS, configured_providers, setup_hint
from tooling.web.search.types import ProviderAccess, ProviderReply, SearchHit, SearchQuery
from tooling.web.session import WebSession
from tooling.web.settings import SearchProvider, WebSettings

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
# Added by advertisers and newsletters; the page is the same without them.
_TRACKING_PREFIXES = ("utm_", "mc_", "fb_", "ga_", "hsa_")
_TRACKING_NAMES = frozenset(
    ("gclid", "fbclid", "msclkid", "dclid", "yclid", "igshid", "ref_src", "srsltid", "gad_source")
)


def merge_hits(replies: Sequence[tuple[str, Sequence[SearchHit]]], count: int) -> tuple[SearchHit, ...]:
    """Return at most `count` results; what several providers found stands where the first of them put it."""
    kept: dict[str, SearchHit] = {}
    named = [[replace(hit, found_by=(name,)) for hit in hits] for name, hits in replies]
    for hit in _interleave(named):
        key = canonical_url(hit.url)
        kept[key] = _merge_duplicates(kept[key], hit) if key in kept else hit
    return tuple(kept.values())[:count]


def canonical_url(url: str) -> str:
    """Return one spelling for all addresses of the same page, for comparison only."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.lower().removesuffix(_DEFAULT_PORTS.get(parts.scheme.lower(), "")).removeprefix("www.")
        fields = sorted(field for field in parse_qsl(parts.query, keep_blank_values=True) if not _is_tracking(field[0]))
    except ValueError:
        return url
    return f"{host}{parts.path.rstrip('/')}?{urlencode(fields)}"


def _is_tracking(name: str) -> bool:
    return name.lower().startswith(_TRACKING_PREFIXES) or name.lower() in _TRACKING_NAMES


def _interleave(lists: Sequence[Sequence[SearchHit]]) -> Iterable[SearchHit]:
    return (hit for hit in chain.from_iterable(zip_longest(*lists)) if hit is not None)


def _merge_duplicates(first: SearchHit, second: SearchHit) -> SearchHit:
    snippet = max(first.snippet, second.snippet, key=len)
    names = tuple(dict.fromkeys((*first.found_by, *second.found_by)))
    return replace(first, snippet=snippet, date=first.date or second.date, found_by=names)


Send = Callable[[WebRequest], Awaitable[WebResponse]]
_MAX_BYTES = 2_000_000


@dataclass(slots=True, kw_only=True)
class SearchResults:
    """What came of a search: who was asked, what each found or why it could not, and what it costs."""

    hits: tuple[SearchHit, ...] = ()
    answered: list[SearchProvider] = field(default_factory=list)
    failed: dict[SearchProvider, str] = field(default_factory=dict)
    cost_usd: float = 0.0


class Search:
    """Searches with the providers that are set up; `fanout` of them at the same time."""

    def __init__(self, settings: WebSettings, send: Send) -> None:
        self._settings = settings
        self._send = send

    async def run(self, query: SearchQuery) -> SearchResults:
        """Ask until as many providers as wanted have found something, or all have been asked."""
        found = SearchResults()
        places = configured_providers(self._settings)
        waiting = deque(places.items())
        replies: dict[SearchProvider, ProviderReply] = {}

        async def ask_along() -> None:
            """Go down the line until one finds something."""
            while waiting:
                name, access = waiting.popleft()
                try:
                    reply = await self._ask(name, access, query)
                except SearchFault as fault:
                    found.failed[name] = str(fault)
                    continue
                replies[name] = reply
                if reply.hits:
                    return

        async with asyncio.TaskGroup() as group:
            for _ in range(self._settings.search_fanout):
                group.create_task(ask_along())
        found.answered = [name for name in places if name in replies]
        found.hits = merge_hits([(name, replies[name].hits) for name in found.answered], query.count)
        found.cost_usd = sum(reply.cost_usd for reply in replies.values())
        return found

    async def _ask(self, name: SearchProvider, access: ProviderAccess, query: SearchQuery) -> ProviderReply:
        """Ask one provider, and once more when its fault may pass."""
        try:
            return await self._ask_once(name, access, query)
        except SearchFault as fault:
            if fault.retry_delay_s is None:
                raise
            await asyncio.sleep(fault.retry_delay_s)
        return await self._ask_once(name, access, query)

    async def _ask_once(self, name: SearchProvider, access: ProviderAccess, query: SearchQuery) -> ProviderReply:
        provider = PROVIDERS[name]
        limit_s = self._settings.search_timeout_s or provider.timeout_s
        request = replace(provider.build_request(query, access), timeout_s=limit_s, max_bytes=_MAX_BYTES)
        try:
            response = await self._send(request)
        except WebFault as fault:
            raise from_web_fault(fault) from fault
        return provider.parse_response(response)


NO_RESULTS = "(no results)"


def format_for_model(found: SearchResults) -> str:
    """Return the results as data with their origin, and below them what did not work."""
    blocks = "\n\n".join(_format_hit(number, hit, found) for number, hit in enumerate(found.hits, 1))
    told = wrap_untrusted(blocks, origin=f"search by {', '.join(found.answered)}") if blocks else NO_RESULTS
    return "\n".join((told, *(f"[{name} was asked before: {words}]" for name, words in found.failed.items())))


def format_for_user(found: SearchResults) -> str:
    """Return titles and addresses."""
    return "\n".join(f"{number}. {hit.title}  {hit.url}" for number, hit in enumerate(found.hits, 1)) or NO_RESULTS


def _format_hit(number: int, hit: SearchHit, found: SearchResults) -> str:
    lines = [f"{number}. {hit.title}", hit.date, hit.url, hit.snippet]
    if len(found.answered) > 1:
        lines.append(f"(found by {', '.join(hit.found_by)})")
    return "\n   ".join(line for line in lines if line)


async def search(query: SearchQuery, web: WebSession) -> ToolResult:
    """Ask the providers that are set up; finding nothing is a result, reaching nobody is an error."""
    if not configured_providers(web.settings):
        raise ToolError(f"No search provider is set up. The user can set {setup_hint(web.settings.search_order)}.")
    client = await web.client()
    found = await Search(web.settings, client.send).run(query)
    if not found.answered:
        told = "; ".join(f"{name}: {why}" for name, why in found.failed.items())
        raise ToolError(f"No search provider answered. {told}.")
    return ToolResult(format_for_model(found), display=format_for_user(found), meta=ToolMeta(cost_usd=found.cost_usd))
