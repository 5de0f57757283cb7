"""The search providers there are, as a table somebody can read."""

from collections.abc import Callable, Mapping

from tooling.contract.fast_dataclass import dataclass
from tooling.web.http.messages import WebRequest, WebResponse
from tooling.web.search import brave, jina, searxng, tavily, zai
from tooling.web.search.types import ProviderAccess, ProviderReply, SearchQuery
from tooling.web.settings import SEARCH_ORDER, SEARCH_VARIABLES, SearchProvider, WebSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSpec:
    """One provider: its time limit, its own address, and its wire format."""

    timeout_s: float
    url: str = ""
    build_request: Callable[[SearchQuery, ProviderAccess], WebRequest]
    parse_response: Callable[[WebResponse], ProviderReply]

    @property
    def has_key(self) -> bool:
        """Say whether a key opens it; the others want an address."""
        return bool(self.url)


PROVIDERS: Mapping[SearchProvider, ProviderSpec] = {
    "proxy": ProviderSpec(
        timeout_s=30,
        build_request=zai.build_proxy_request,
        parse_response=zai.parse_proxy_response,
    ),
    "tavily": ProviderSpec(
        timeout_s=20,
        url=tavily.URL,
        build_request=tavily.build_request,
        parse_response=tavily.parse_response,
    ),
    "jina": ProviderSpec(
        timeout_s=30,
        url=jina.URL,
        build_request=jina.build_request,
        parse_response=jina.parse_response,
    ),
    "zai": ProviderSpec(
        timeout_s=30,
        url=zai.URL,
        build_request=zai.build_request,
        parse_response=zai.parse_response,
    ),
    "searxng": ProviderSpec(timeout_s=20, build_request=searxng.build_request, parse_response=searxng.parse_response),
    "brave": ProviderSpec(
        timeout_s=15,
        url=brave.URL,
        build_request=brave.build_request,
        parse_response=brave.parse_response,
    ),
}


def configured_providers(settings: WebSettings) -> dict[SearchProvider, ProviderAccess]:
    """Return the providers that can be asked, in order, with what they need."""
    places = {name: _access(name, settings) for name in dict.fromkeys(settings.search_order)}
    return {name: access for name, access in places.items() if access is not None}


def _access(name: SearchProvider, settings: WebSettings) -> ProviderAccess | None:
    provider = PROVIDERS[name]
    url = (settings.search_urls.get(name) or provider.url).rstrip("/")
    key = settings.keys.get(name, "") if provider.has_key else ""
    return ProviderAccess(url=url, key=key) if url and (key or not provider.has_key) else None


def setup_hint(order: tuple[SearchProvider, ...]) -> str:
    """Return how each provider is set up: its environment variable and its setting."""
    known = {name: f"{variable} ({setting}.{name})" for variable, (setting, name) in SEARCH_VARIABLES.items()}
    return ", ".join(known[name] for name in order or SEARCH_ORDER)
