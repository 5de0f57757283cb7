"""The search providers: the wire format of each, the table of all, and the configured ones."""

import json
from collections.abc import Callable, Iterable, Mapping
from html import unescape
from urllib.parse import urlencode

from tooling.contract.fast_dataclass import dataclass
from tooling.web.http.messages import WebRequest, WebResponse
from tooling.web.search.errors import SearchFault, json_or_raise, provider_message, response_fault
from tooling.web.search.types import (
    ProviderAccess,
    ProviderReply,
    SearchHit,
    SearchQuery,
    build_hit,
    number_at,
    objects_at,
)
from tooling.web.settings import SEARCH_ORDER, SEARCH_VARIABLES, SearchProvider, WebSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSpec:
    """One provider: timeout, default URL and wire format."""

    timeout_s: float
    url: str = ""
    build_request: Callable[[SearchQuery, ProviderAccess], WebRequest]
    parse_response: Callable[[WebResponse], ProviderReply]

    @property
    def has_key(self) -> bool:
        """Return whether the provider needs a key; the others need a URL."""
        return bool(self.url)


def _hits(
    items: Iterable[Mapping[str, object]], *, snippet: str = "content", date: str = "date"
) -> tuple[SearchHit, ...]:
    """Build hits from JSON objects; `snippet` and `date` are the names of their fields."""
    hits = (
        build_hit(title=item.get("title"), url=item.get("url"), snippet=item.get(snippet), date=item.get(date))
        for item in items
    )
    return tuple(hit for hit in hits if hit)


# Tavily: POST /search with a bearer token; billed in credits, one for a basic search.

_TAVILY_USD_PER_CREDIT = 0.008
_TAVILY_MAX_RESULTS = 20
_TAVILY_MAX_CHARS = 400


def _tavily_request(query: SearchQuery, access: ProviderAccess) -> WebRequest:
    body = {
        "query": query.text[:_TAVILY_MAX_CHARS],
        "max_results": min(query.count, _TAVILY_MAX_RESULTS),
        "search_depth": "basic",
        "include_usage": True,
    }
    return WebRequest(
        url=f"{access.url}/search",
        method="POST",
        headers={
            "Authorization": f"Bearer {access.key}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        },
        body=json.dumps(body).encode(),
        is_trusted=True,
    )


def _tavily_reply(response: WebResponse) -> ProviderReply:
    data = json_or_raise(response)
    # Only news results have a date.
    hits = _hits(objects_at(data, "results"), date="published_date")
    credits_used = number_at(data, "usage", "credits")
    return ProviderReply(hits=hits, cost_usd=_TAVILY_USD_PER_CREDIT * (1 if credits_used is None else credits_used))


# Jina: GET / with the query as a parameter; billed in tokens.

_JINA_USD_PER_TOKEN = 0.05e-6
_JINA_NO_RESULTS = "no search results"


def _jina_request(query: SearchQuery, access: ProviderAccess) -> WebRequest:
    return WebRequest(
        url=f"{access.url}/?{urlencode({'q': query.text, 'num': query.count})}",
        headers={
            "Authorization": f"Bearer {access.key}",
            "Accept": "application/json",
            # Without this, Jina reads every result page and bills for it.
            "X-Respond-With": "no-content",
        },
        is_trusted=True,
    )


def _jina_reply(response: WebResponse) -> ProviderReply:
    # No results come as an error.
    if response.status == 422 and _JINA_NO_RESULTS in provider_message(response).lower():
        return ProviderReply(hits=())
    data = json_or_raise(response)
    items = [{**item, "content": item.get("description") or item.get("content")} for item in objects_at(data, "data")]
    tokens = number_at(data, "meta", "usage", "tokens") or 0
    return ProviderReply(hits=_hits(items), cost_usd=tokens * _JINA_USD_PER_TOKEN)


# Z.AI: POST /paas/v4/web_search; billed by the request. A proxy with its own key returns the same JSON for
# GET /zai/search.

_ZAI_USD_PER_SEARCH = 0.01
_ZAI_MAX_RESULTS = 50
# An empty balance has the same status as the rate limit; only this code distinguishes them.
_ZAI_NO_BALANCE = b'"1113"'


def _zai_request(query: SearchQuery, access: ProviderAccess) -> WebRequest:
    body = {
        "search_engine": "search-prime",
        "search_query": query.text,
        "count": min(query.count, _ZAI_MAX_RESULTS),
    }
    return WebRequest(
        url=f"{access.url}/paas/v4/web_search",
        method="POST",
        headers={
            "Authorization": f"Bearer {access.key}",
            "Content-Type": "application/json",
            "Accept-Language": "en-US,en",
        },
        body=json.dumps(body).encode(),
        is_trusted=True,
    )


def _zai_reply(response: WebResponse) -> ProviderReply:
    return ProviderReply(hits=_proxy_reply(response).hits, cost_usd=_ZAI_USD_PER_SEARCH)


def _proxy_request(query: SearchQuery, access: ProviderAccess) -> WebRequest:
    return WebRequest(url=f"{access.url}/zai/search?{urlencode({'q': query.text})}", is_trusted=True)


def _proxy_reply(response: WebResponse) -> ProviderReply:
    if response.status == 429 and _ZAI_NO_BALANCE in response.body:
        raise response_fault(response, "quota")
    items = objects_at(json_or_raise(response), "search_result")
    links = [{**item, "url": item.get("link") or item.get("url")} for item in items]
    return ProviderReply(hits=_hits(links, date="publish_date"))


# SearXNG: GET /search?format=json of the user's instance; no key, no cost, and the instance chooses the result count.


def _searxng_request(query: SearchQuery, access: ProviderAccess) -> WebRequest:
    parameters = urlencode({"q": query.text, "format": "json"})
    return WebRequest(url=f"{access.url}/search?{parameters}", headers={"Accept": "application/json"}, is_trusted=True)


def _searxng_reply(response: WebResponse) -> ProviderReply:
    if response.status == 403:
        raise response_fault(response, "no_json")
    data = json_or_raise(response)
    hits = _hits(objects_at(data, "results"), date="publishedDate")
    if not hits and isinstance(data, dict) and data.get("unresponsive_engines"):
        raise SearchFault("engines")
    return ProviderReply(hits=hits)


# Brave: GET /res/v1/web/search with the key in its own header; billed by the request.

_BRAVE_USD_PER_SEARCH = 0.005
_BRAVE_MAX_RESULTS = 20
_BRAVE_MAX_CHARS = 400
_BRAVE_MAX_WORDS = 50
_BRAVE_WRONG_KEY = b"SUBSCRIPTION_TOKEN_INVALID"


def _brave_request(query: SearchQuery, access: ProviderAccess) -> WebRequest:
    parameters = {
        "q": " ".join(query.text.split()[:_BRAVE_MAX_WORDS])[:_BRAVE_MAX_CHARS],
        "count": min(query.count, _BRAVE_MAX_RESULTS),
        "result_filter": "web",
        "text_decorations": "false",
    }
    return WebRequest(
        url=f"{access.url}/res/v1/web/search?{urlencode(parameters)}",
        headers={"X-Subscription-Token": access.key, "Accept": "application/json"},
        is_trusted=True,
    )


def _brave_reply(response: WebResponse) -> ProviderReply:
    if response.status == 422 and _BRAVE_WRONG_KEY in response.body:
        raise response_fault(response, "auth")
    data = json_or_raise(response)
    # A reply without results has no `web` part.
    is_empty = isinstance(data, Mapping) and data.get("type") == "search" and "web" not in data
    items = [] if is_empty else objects_at(data, "web", "results")
    decoded = [
        {
            **item,
            "title": _unescape(item.get("title")),
            "description": _unescape(item.get("description")),
            "date": item.get("page_age") or item.get("age"),
        }
        for item in items
    ]
    return ProviderReply(hits=_hits(decoded, snippet="description"), cost_usd=_BRAVE_USD_PER_SEARCH)


def _unescape(value: object) -> str:
    return unescape(value) if isinstance(value, str) else ""


PROVIDERS: Mapping[SearchProvider, ProviderSpec] = {
    "proxy": ProviderSpec(timeout_s=30, build_request=_proxy_request, parse_response=_proxy_reply),
    "tavily": ProviderSpec(
        timeout_s=20,
        url="https://api.tavily.com",
        build_request=_tavily_request,
        parse_response=_tavily_reply,
    ),
    "jina": ProviderSpec(
        timeout_s=30,
        url="https://s.jina.ai",
        build_request=_jina_request,
        parse_response=_jina_reply,
    ),
    "zai": ProviderSpec(
        timeout_s=30,
        url="https://api.z.ai/api",
        build_request=_zai_request,
        parse_response=_zai_reply,
    ),
    "searxng": ProviderSpec(timeout_s=20, build_request=_searxng_request, parse_response=_searxng_reply),
    "brave": ProviderSpec(
        timeout_s=15,
        url="https://api.search.brave.com",
        build_request=_brave_request,
        parse_response=_brave_reply,
    ),
}


def configured_providers(settings: WebSettings) -> dict[SearchProvider, ProviderAccess]:
    """Return the providers with a key or URL, in the order of the settings."""
    found = {name: _access(name, settings) for name in dict.fromkeys(settings.search_order)}
    return {name: access for name, access in found.items() if access is not None}


def _access(name: SearchProvider, settings: WebSettings) -> ProviderAccess | None:
    provider = PROVIDERS[name]
    url = (settings.search_urls.get(name) or provider.url).rstrip("/")
    key = settings.keys.get(name, "") if provider.has_key else ""
    return ProviderAccess(url=url, key=key) if url and (key or not provider.has_key) else None


def setup_hint(order: tuple[SearchProvider, ...]) -> str:
    """Return the environment variable and the setting that configure each provider."""
    known = {name: f"{variable} ({setting}.{name})" for variable, (setting, name) in SEARCH_VARIABLES.items()}
    return ", ".join(known[name] for name in order or SEARCH_ORDER)
