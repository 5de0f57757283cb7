"""HTTP transport that resolves a name once, checks all its addresses and connects to one of them.

The check is where sockets are opened, so no redirect, Alt-Svc or second resolution can bypass it. The Host header and
the TLS server name are those of the URL.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from importlib import import_module

import httpcore

from tooling.web.addresses.url_check import AddressRefused, HostUnknown, Resolver, Target, resolve_public
from tooling.web.http.body import BodyReader
from tooling.web.http.httpx_import import httpx
from tooling.web.http.messages import WebFault, WebResponse
from tooling.web.network_attempt import NetworkAttempt, OnAttempt
from tooling.web.settings import WebSettings

# Import these now: the first connection would import them and block the event loop.
for _name in ("sniffio", "anyio.abc", "anyio.lowlevel", "anyio.streams.memory", "anyio.streams.tls"):
    with suppress(ImportError):
        import_module(_name)

MAX_ADDRESSES_TRIED = 4
# Longer than a model usually thinks between two pages of one site.
KEEP_ALIVE_S = 60.0
MAX_CONNECTIONS = 64
MAX_IDLE_CONNECTIONS = 16


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """A network backend that connects to checked addresses only."""

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
        """Resolve, check and connect within the timeout."""
        try:
            async with asyncio.timeout(timeout):
                addresses = await resolve_public(
                    host,
                    port,
                    resolver=self._resolver,
                    allow_loopback=self._allow_loopback,
                    allow_private=self._allow_private,
                )
                return await self._connect_first(addresses[:MAX_ADDRESSES_TRIED], port, timeout)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} does not respond") from error

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refuse Unix sockets: they are not the web."""
        raise AddressRefused("a Unix socket cannot be requested")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _connect_first(
        self, addresses: tuple[str, ...], port: int, timeout: float | None
    ) -> httpcore.AsyncNetworkStream:
        attempt_timeout_s = None if timeout is None else timeout / len(addresses)
        for address in addresses[:-1]:
            try:
                return await self._sockets.connect_tcp(address, port, attempt_timeout_s)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._sockets.connect_tcp(addresses[-1], port)


class PinnedTransport(httpx.AsyncBaseTransport):
    """A connection pool over a checked network."""

    def __init__(self, network: CheckedNetwork, tls: ssl.SSLContext | None) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            network_backend=network,
            http2=tls is not None,
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_IDLE_CONNECTIONS,
            keepalive_expiry=KEEP_ALIVE_S,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request over the pool."""
        assert isinstance(request.stream, httpx.AsyncByteStream)
        url = request.url
        response = await self._pool.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
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
        await self._pool.aclose()


class _Stream(httpx.AsyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.aiter_stream():
            yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()


MAX_DISCARDED_BYTES = 32_768
_CHUNKS_PER_YIELD = 64
_DISCARDED_BODY_STATUSES = frozenset((204, 301, 302, 303, 304, 307, 308))


class RawHttpClient:
    """Sends single requests, without redirects or cache.

    It uses its transports directly: httpx's own client would read proxies and credentials from the environment, store
    cookies, and parse the target of a redirect before we have checked it.
    """

    def __init__(
        self,
        settings: WebSettings,
        *,
        resolver: Resolver | None,
        tls: Callable[[], ssl.SSLContext],
        on_attempt: OnAttempt | None = None,
    ) -> None:
        self._settings = settings
        self._resolver = resolver
        self._tls = tls
        self._on_attempt = on_attempt
        self._transports: dict[tuple[bool, bool], asyncio.Future[PinnedTransport]] = {}

    def with_default_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request merged over the defaults."""
        defaults = {"User-Agent": self._settings.user_agent, "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
        return defaults | dict(headers)

    async def send(
        self,
        target: Target,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        max_bytes: int,
        allow_local: bool,
    ) -> WebResponse:
        """Send one request and read the response; `allow_local` permits this machine and private networks."""
        try:
            response = await self._send(target, method, headers, body, max_bytes=max_bytes, allow_local=allow_local)
        except Exception as error:
            fault = error if isinstance(error, WebFault) else self._to_fault(error, target)
            if fault is None:
                raise
            self._report(target, str(fault), allowed=fault.kind != "refused")
            raise fault from error
        self._report(target, f"requested by a web tool, status {response.status}", allowed=True)
        return response

    async def close(self) -> None:
        """Close all connections; may be called twice."""
        while self._transports:
            _, transport = self._transports.popitem()
            await (await transport).aclose()

    async def _send(
        self,
        target: Target,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        max_bytes: int,
        allow_local: bool,
    ) -> WebResponse:
        transport = await self._transport(is_https=target.scheme == "https", allow_local=allow_local)
        timeouts = {"timeout": {"connect": self._settings.connect_timeout_s}}
        outgoing = httpx.Request(method, target.url, headers=dict(headers), content=body, extensions=timeouts)
        response = await transport.handle_async_request(outgoing)
        try:
            # The body of a redirect is read and discarded so that the connection can be reused.
            is_discarded = response.status_code in _DISCARDED_BODY_STATUSES
            encoding = "" if is_discarded else response.headers.get("content-encoding", "")
            reader = BodyReader(encoding, MAX_DISCARDED_BYTES if is_discarded else max_bytes)
            count = 0
            async for chunk in response.aiter_raw():
                if not reader.feed(chunk):
                    break
                count += 1
                if not count % _CHUNKS_PER_YIELD:
                    # Tiny chunks are yielded without suspending while the network buffer lasts.
                    await asyncio.sleep(0)
            reader.finish()
        finally:
            await response.aclose()
        return WebResponse(
            url=target.url,
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=reader.data,
            is_truncated=reader.is_truncated,
            is_bomb=reader.is_bomb,
        )

    async def _transport(self, *, is_https: bool, allow_local: bool) -> PinnedTransport:
        key = (is_https, allow_local)
        if key not in self._transports:
            self._transports[key] = asyncio.ensure_future(
                self._new_transport(is_https=is_https, allow_local=allow_local)
            )
        return await asyncio.shield(self._transports[key])

    async def _new_transport(self, *, is_https: bool, allow_local: bool) -> PinnedTransport:
        # Loading the certificates is slow enough to block the event loop noticeably.
        tls = await asyncio.to_thread(self._tls) if is_https else None
        network = CheckedNetwork(
            allow_loopback=allow_local or self._settings.allow_loopback,
            allow_private=allow_local,
            resolver=self._resolver,
        )
        return PinnedTransport(network, tls)

    def _report(self, target: Target, reason: str, *, allowed: bool) -> None:
        if self._on_attempt:
            self._on_attempt(NetworkAttempt(host=target.host, port=target.port, allowed=allowed, reason=reason))

    def _to_fault(self, error: Exception, target: Target) -> WebFault | None:
        """Return the fault for an exception, or None if it is not a failure of the request."""
        match error:
            case HostUnknown():
                return WebFault("unknown_host", error.reason)
            case AddressRefused():
                return WebFault("refused", error.reason)
            case httpcore.ConnectTimeout() | httpx.ConnectTimeout():
                return WebFault("timeout", no_connection(target.host, self._settings.connect_timeout_s))
            case httpcore.ConnectError() | httpx.ConnectError():
                return _connect_fault(error, target)
            case httpcore.TimeoutException() | httpx.TimeoutException():
                return WebFault("timeout", f"{target.host} took too long")
            case httpcore.NetworkError() | httpcore.ProtocolError() | httpx.TransportError() | httpx.InvalidURL():
                # The library's message quotes the server, and untrusted text does not belong in an error.
                return WebFault("broken", f"{target.host} closed the connection early or did not speak HTTP")
            case _:
                return None


def no_connection(host: str, timeout_s: float) -> str:
    """Return the message for a connection that timed out."""
    return f"{host} did not respond within {timeout_s:g} s"


def _connect_fault(error: Exception, target: Target) -> WebFault:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLError):
        reason = getattr(cause, "verify_message", "") or cause.reason or "TLS failed"
        return WebFault("tls", f"the connection to {target.host} cannot be trusted ({reason})")
    return WebFault("unreachable", f"{target.host} cannot be reached on port {target.port} ({error})")
