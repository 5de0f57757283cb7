"""How requests travel: the name is resolved once, all its addresses are checked, the connection goes to one of them.

The check sits where sockets are opened, so no redirect, no alternative service and no second look at a name can get
round it. Host header and TLS name stay those of the URL.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from importlib import import_module

import httpcore

from tooling.web.addresses.url_check import AddressRefused, Resolver, resolve_public
from tooling.web.http.httpx_import import httpx

# The first connection would load these, in the loop's own time.
for _name in ("sniffio", "anyio.abc", "anyio.lowlevel", "anyio.streams.memory", "anyio.streams.tls"):
    with suppress(ImportError):
        import_module(_name)

MOST_ADDRESSES_TRIED = 4
# Longer than a model thinks between two pages of one site.
KEEP_ALIVE_S = 60.0
MOST_CONNECTIONS = 64
MOST_IDLE_CONNECTIONS = 16


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Opens connections to checked addresses only."""

    def __init__(self, *, allow_loopback: bool, allow_private: bool = False, resolver: Resolver | None = None) -> None:
        self._allow_loopback = allow_loopback
        self._allow_private = allow_private
        self._resolver = resolver
        self._sockets = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Resolve, check and connect, all within the time to connect."""
        try:
            async with asyncio.timeout(timeout):
                addresses = await resolve_public(
                    host,
                    port,
                    resolver=self._resolver,
                    allow_loopback=self._allow_loopback,
                    allow_private=self._allow_private,
                )
                return await self._first(addresses[:MOST_ADDRESSES_TRIED], port, timeout)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} does not answer") from error

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refuse: a file is not the web."""
        raise AddressRefused("a socket on this machine cannot be requested")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def _first(self, addresses: tuple[str, ...], port: int, timeout: float | None) -> httpcore.AsyncNetworkStream:
        patience_s = None if timeout is None else timeout / len(addresses)
        for address in addresses[:-1]:
            try:
                return await self._sockets.connect_tcp(address, port, patience_s)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._sockets.connect_tcp(addresses[-1], port)


class PinnedTransport(httpx.AsyncBaseTransport):
    """The transport of the web client: a pool of connections over a checked network."""

    def __init__(self, network: CheckedNetwork, tls: ssl.SSLContext | None) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            network_backend=network,
            http2=tls is not None,
            max_connections=MOST_CONNECTIONS,
            max_keepalive_connections=MOST_IDLE_CONNECTIONS,
            keepalive_expiry=KEEP_ALIVE_S,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request over the pool."""
        assert isinstance(request.stream, httpx.AsyncByteStream)
        url = request.url
        place = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        response = await self._pool.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=place,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Stream(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class _Stream(httpx.AsyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.aiter_stream():
            yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()
