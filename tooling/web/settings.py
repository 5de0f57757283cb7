"""Settings for how tools use the web."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from tooling.contract.fast_dataclass import dataclass
from tooling.output import FETCH_MAX_CHARS

if TYPE_CHECKING:
    from tooling.web.search.types import SearchHit

# The query and the wanted number of results.
SearchFunction: TypeAlias = "Callable[[str, int], Awaitable[Sequence[SearchHit]]]"
SearchProvider: TypeAlias = Literal["proxy", "tavily", "jina", "zai", "searxng", "brave"]
SEARCH_ORDER: tuple[SearchProvider, ...] = get_args(SearchProvider)

# Environment variable of each search provider → the setting it fills.
SEARCH_VARIABLES: Mapping[str, tuple[str, SearchProvider]] = {
    "PROXY_URL": ("search_urls", "proxy"),
    "TAVILY_API_KEY": ("keys", "tavily"),
    "JINA_API_KEY": ("keys", "jina"),
    "ZAI_API_KEY": ("keys", "zai"),
    "SEARXNG_URL": ("search_urls", "searxng"),
    "BRAVE_API_KEY": ("keys", "brave"),
}

ReaderMode: TypeAlias = Literal["off", "fallback", "always"]

CONNECT_TIMEOUT_S = 5.0
TIMEOUT_S = 30.0
MAX_BYTES = 5_000_000
CACHE_BYTES = 100_000_000
HOST_CONNECTIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """Limits and options of all requests made by tools; `keys` are API keys by service name.

    `search_order` lists the providers to query, `search_fanout` is how many of them run in parallel. `search_urls`
    are base URLs by provider; `search_timeout_s` overrides the timeout of each provider. `search_functions` are asked
    before all providers.
    """

    allow_loopback: bool = False
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    timeout_s: float = TIMEOUT_S
    max_bytes: int = MAX_BYTES
    user_agent: str = "Mozilla/5.0 (compatible; windlass)"
    keys: Mapping[str, str] = field(default_factory=dict)
    cache_dir: Path | None = None
    cache_bytes: int = CACHE_BYTES
    respects_robots: bool = False
    host_connections: int = HOST_CONNECTIONS
    host_pause_s: float = 0.0
    max_chars: int = FETCH_MAX_CHARS
    reader: ReaderMode = "fallback"
    reader_url: str = ""
    search_order: tuple[SearchProvider, ...] = SEARCH_ORDER
    search_fanout: int = 1
    search_urls: Mapping[str, str] = field(default_factory=dict)
    search_timeout_s: float | None = None
    search_functions: Mapping[str, SearchFunction] = field(default_factory=dict)
