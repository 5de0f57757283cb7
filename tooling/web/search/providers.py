"""The search providers there are, as a table somebody can read."""

from collections.abc import Callable, Mapping

from tooling.contract.fast_dataclass import dataclass
from tooling.web.http.messages import WebRequest, WebResponse
from tooling.web.search import brave, jina, searxng, tavily, zai
from tooling.web.search.types import Access, Query, Reply
from tooling.web.settings import SEARCH_ORDER, SearchProvider, WebSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider: its time limit, its own address, the variable with its key or address, and its wire format."""

    timeout_s: float
    variable: str
    url: str = ""
    request: Callable[[Query, Access], WebRequest]
    read: Callable[[WebResponse], Reply]

    @property
    def has_key(self) -> bool:
        """Say whether a key opens it; the others want an address."""
        return bool(self.url)


PROVIDERS: Mapping[SearchProvider, Provider] = {
    "proxy": Provider(timeout_s=30, variable="PROXY_URL", request=zai.request_of_proxy, read=zai.read_of_proxy),
    "tavily": Provider(
        timeout_s=20, variable="TAVILY_API_KEY", url=tavily.URL, request=tavily.request, read=tavily.read
    ),
    "jina": Provider(timeout_s=30, variable="JINA_API_KEY", url=jina.URL, request=jina.request, read=jina.read),
    "zai": Provider(timeout_s=30, variable="ZAI_API_KEY", url=zai.URL, request=zai.request, read=zai.read),
    "searxng": Provider(timeout_s=20, variable="SEARXNG_URL", request=searxng.request, read=searxng.read),
    "brave": Provider(timeout_s=15, variable="BRAVE_API_KEY", url=brave.URL, request=brave.request, read=brave.read),
}


def usable(settings: WebSettings) -> dict[SearchProvider, Access]:
    """Return the providers that can be asked, in order, with what they need."""
    places = {name: _access(name, settings) for name in dict.fromkeys(settings.search_order)}
    return {name: access for name, access in places.items() if access is not None}


def _access(name: SearchProvider, settings: WebSettings) -> Access | None:
    provider = PROVIDERS[name]
    url = (settings.search_urls.get(name) or provider.url).rstrip("/")
    key = settings.keys.get(name, "") if provider.has_key else ""
    return Access(url=url, key=key) if url and (key or not provider.has_key) else None


def setup_words(order: tuple[SearchProvider, ...]) -> str:
    """Return how each provider is set up: its environment variable and its setting."""
    order = order or SEARCH_ORDER
    return ", ".join(
        f"{PROVIDERS[name].variable} ({'keys' if PROVIDERS[name].has_key else 'search_urls'}.{name})" for name in order
    )
