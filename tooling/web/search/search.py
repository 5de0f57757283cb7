"""Run a search: query the providers in order with one retry each, fall back on failure, merge the results."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import chain, zip_longest
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolError, ToolMeta, ToolResult
from tooling.web.http.messages import WebFault, WebRequest, WebResponse
from tooling.web.page import wrap_untrusted
from tooling.web.search.errors import SearchFault, from_web_fault
from tooling.web.search.providers import PROVIDERS, configured_providers, setup_hint
from tooling.web.search.types import ProviderAccess, ProviderReply, SearchHit, SearchQuery, build_hit
from tooling.web.settings import SearchFunction, SearchProvider, WebSettings

if TYPE_CHECKING:
    from tooling.web.http.web_client import WebClient

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
# Tracking parameters of advertisers and newsletters; the page is the same without them.
_TRACKING_PREFIXES = ("utm_", "mc_", "fb_", "ga_", "hsa_")
_TRACKING_NAMES = frozenset(
    ("gclid", "fbclid", "msclkid", "dclid", "yclid", "igshid", "ref_src", "srsltid", "gad_source")
)


def merge_hits(replies: Sequence[tuple[str, Sequence[SearchHit]]], count: int) -> tuple[SearchHit, ...]:
    """Interleave results and merge duplicates, which keep their best rank; return at most `count`."""
    merged: dict[str, SearchHit] = {}
    labelled = [[replace(hit, found_by=(name,)) for hit in hits] for name, hits in replies]
    for hit in _interleave(labelled):
        key = canonical_url(hit.url)
        merged[key] = _merge_duplicates(merged[key], hit) if key in merged else hit
    return tuple(merged.values())[:count]


def canonical_url(url: str) -> str:
    """Return a form in which all URLs of the same page are equal; for comparison only."""
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
_FUNCTION_TIMEOUT_S = 30.0


@dataclass(slots=True, kw_only=True)
class SearchResults:
    """Merged hits, the providers that answered, the message of each that failed, and the total cost."""

    hits: tuple[SearchHit, ...] = ()
    answered: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    cost_usd: float = 0.0


class WebSearch:
    """Searches with the configured providers, `search_fanout` of them in parallel."""

    def __init__(self, settings: WebSettings, send: Send) -> None:
        self._settings = settings
        self._send = send

    async def run(self, query: SearchQuery) -> SearchResults:
        """Query providers until `search_fanout` of them have results, or none is left."""
        results = SearchResults()
        functions = {name: partial(self._call, search) for name, search in self._settings.search_functions.items()}
        providers: Mapping[str, Callable[[SearchQuery], Awaitable[ProviderReply]]] = functions | {
            name: partial(self._query, name, access) for name, access in configured_providers(self._settings).items()
        }
        queue = deque(providers.items())
        replies: dict[str, ProviderReply] = {}

        async def query_until_hit() -> None:
            while queue:
                name, ask = queue.popleft()
                try:
                    reply = await ask(query)
                except SearchFault as fault:
                    results.failed[name] = str(fault)
                    continue
                replies[name] = reply
                if reply.hits:
                    return

        async with asyncio.TaskGroup() as group:
            for _ in range(self._settings.search_fanout):
                group.create_task(query_until_hit())
        results.answered = [name for name in providers if name in replies]
        results.hits = merge_hits([(name, replies[name].hits) for name in results.answered], query.count)
        results.cost_usd = sum(reply.cost_usd for reply in replies.values())
        return results

    async def _call(self, search: SearchFunction, query: SearchQuery) -> ProviderReply:
        """Call the search function of a plugin; after any exception the next one is called."""
        try:
            async with asyncio.timeout(self._settings.search_timeout_s or _FUNCTION_TIMEOUT_S):
                found = await search(query.text, query.count)
            hits = [build_hit(title=hit.title, url=hit.url, snippet=hit.snippet, date=hit.date) for hit in found]
        except Exception as error:
            raise SearchFault("plugin", f"{type(error).__name__}: {error}") from error
        return ProviderReply(hits=tuple(hit for hit in hits if hit))

    async def _query(self, name: SearchProvider, access: ProviderAccess, query: SearchQuery) -> ProviderReply:
        """Query one provider; retry once if the fault may be temporary."""
        try:
            return await self._query_once(name, access, query)
        except SearchFault as fault:
            if fault.retry_delay_s is None:
                raise
            await asyncio.sleep(fault.retry_delay_s)
        return await self._query_once(name, access, query)

    async def _query_once(self, name: SearchProvider, access: ProviderAccess, query: SearchQuery) -> ProviderReply:
        provider = PROVIDERS[name]
        timeout_s = self._settings.search_timeout_s or provider.timeout_s
        request = replace(provider.build_request(query, access), timeout_s=timeout_s, max_bytes=_MAX_BYTES)
        try:
            response = await self._send(request)
        except WebFault as fault:
            raise from_web_fault(fault) from fault
        return provider.parse_response(response)


NO_RESULTS = "(no results)"
NO_PROVIDER = "No search provider is set up."
ALL_FAILED = "All search providers failed."


def format_for_model(results: SearchResults) -> str:
    """Return the results marked as untrusted, followed by the failures."""
    blocks = "\n\n".join(_format_hit(number, hit, results) for number, hit in enumerate(results.hits, 1))
    text = wrap_untrusted(blocks, origin=f"search by {', '.join(results.answered)}") if blocks else NO_RESULTS
    return "\n".join((text, *(f"[{failure(name, why)}]" for name, why in results.failed.items())))


def failure(name: str, why: str) -> str:
    """Return the line for a provider that failed."""
    return f"{name} failed: {why}"


def format_for_user(results: SearchResults) -> str:
    """Return titles and URLs."""
    return "\n".join(f"{number}. {hit.title}  {hit.url}" for number, hit in enumerate(results.hits, 1)) or NO_RESULTS


def _format_hit(number: int, hit: SearchHit, results: SearchResults) -> str:
    lines = [f"{number}. {hit.title}", hit.date, hit.url, hit.snippet]
    if len(results.answered) > 1:
        lines.append(f"(found by {', '.join(hit.found_by)})")
    return "\n   ".join(line for line in lines if line)


async def search(
    query: SearchQuery, settings: WebSettings, open_client: "Callable[[], Awaitable[WebClient]]"
) -> ToolResult:
    """Search with the configured providers; no results are a result, no working provider is an error."""
    if not (configured_providers(settings) or settings.search_functions):
        raise ToolError(f"{NO_PROVIDER} The user can set {setup_hint(settings.search_order)}.")
    client = await open_client()
    results = await WebSearch(settings, client.send).run(query)
    if not results.answered:
        failures = "; ".join(failure(name, why) for name, why in results.failed.items())
        raise ToolError(f"{ALL_FAILED} {failures}.")
    meta = ToolMeta(cost_usd=results.cost_usd)
    return ToolResult(format_for_model(results), display=format_for_user(results), meta=meta)
