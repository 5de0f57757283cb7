"""HTTP connections of a run: opened on demand, kept alive, shared by all requests."""

import ssl
from urllib.parse import urlsplit

from agent.version import VERSION
from tooling.web.http.httpx_import import httpx

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Longer than most tools run, so the turns of a step share one connection.
KEEP_ALIVE_S = 120.0


class HttpPool:
    """Provides one client per kind of URL."""

    def __init__(self) -> None:
        self._clients: dict[tuple[bool, bool], httpx.AsyncClient] = {}

    def client(self, url: str) -> httpx.AsyncClient:
        """Return the client for a URL; create it on first use."""
        parts = urlsplit(url)
        is_https, is_loopback = parts.scheme == "https", (parts.hostname or "") in _LOOPBACK
        kind = (is_https, is_loopback)
        if kind not in self._clients:
            self._clients[kind] = _create_client(is_https=is_https, is_loopback=is_loopback)
        return self._clients[kind]

    async def close(self) -> None:
        """Close all connections; may be called twice."""
        while self._clients:
            _, client = self._clients.popitem()
            await client.aclose()


def _create_client(*, is_https: bool, is_loopback: bool) -> httpx.AsyncClient:
    # Loading the certificate store costs more than the rest of a first request; plain http never uses it.
    context = httpx.create_ssl_context() if is_https else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.AsyncClient(
        verify=context,
        # Proxies from the environment are for external hosts, not for the user's machine.
        trust_env=not is_loopback,
        # The key must only be sent to the URL it was set for.
        follow_redirects=False,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEP_ALIVE_S),
        headers={"User-Agent": f"windlass/{VERSION}", "Accept-Encoding": "identity"},
    )
