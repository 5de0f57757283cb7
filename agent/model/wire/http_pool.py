"""The connections of a run: kept alive, shared by all requests, made when first needed."""

import ssl
from urllib.parse import urlsplit

from agent.version import VERSION
from tooling.web.http.httpx_import import httpx

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Longer than most tools run, so a loop of turns stays on one connection.
KEEP_ALIVE_S = 120.0


class HttpPool:
    """Hands out one client for each kind of address."""

    def __init__(self) -> None:
        self._clients: dict[tuple[bool, bool], httpx.AsyncClient] = {}

    def client(self, url: str) -> httpx.AsyncClient:
        """Return the client for an address; the first call for its kind makes it."""
        parts = urlsplit(url)
        is_https, is_loopback = parts.scheme == "https", (parts.hostname or "") in _LOOPBACK
        kind = (is_https, is_loopback)
        if kind not in self._clients:
            self._clients[kind] = _client(is_https=is_https, is_loopback=is_loopback)
        return self._clients[kind]

    async def close(self) -> None:
        """Close all connections; harmless twice."""
        while self._clients:
            _, client = self._clients.popitem()
            await client.aclose()


def _client(*, is_https: bool, is_loopback: bool) -> httpx.AsyncClient:
    # Loading the certificate store costs more than the rest of a first request; plain http never uses it.
    context = httpx.create_ssl_context() if is_https else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.AsyncClient(
        verify=context,
        # A proxy from the environment is for the outside world, never for the user's own machine.
        trust_env=not is_loopback,
        # The key goes to the address it was set for and nowhere else.
        follow_redirects=False,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEP_ALIVE_S),
        headers={"User-Agent": f"windlass/{VERSION}", "Accept-Encoding": "identity"},
    )
