"""The transport of nearly all requests: HTTP/1.1 on asyncio, with connections kept alive."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from agent.config.network import find_certificates, find_proxy
from agent.model.faults import ModelFault
from agent.model.http.connection import Connection, describe_error
from agent.model.http.transport_port import HttpRequest, HttpResponse, SendLimits
from tooling.contract.fast_dataclass import dataclass

if TYPE_CHECKING:
    from agent.model.http.stream_response import StreamResponse

# Longer than most tools run, so the turns of a step share one connection.
KEEP_ALIVE_S = 120.0
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The route of a connection: the server, and the proxy, empty if there is none."""

    scheme: str
    host: str
    port: int
    proxy: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def is_forwarded(self) -> bool:
        """Whether a proxy reads the requests, because they are not encrypted."""
        return bool(self.proxy) and self.scheme == "http"


def find_route(url: str, environ: Mapping[str, str]) -> Route:
    """Return the route to a URL. Raises ModelFault if it is not a valid server URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
        host = (parts.hostname or "").encode("ascii" if (parts.hostname or "").isascii() else "idna").decode("ascii")
    except (ValueError, KeyError) as error:
        raise ModelFault("connect", f"{url!r} is not a URL") from error
    if not host:
        raise ModelFault("connect", f"{url!r} is not a URL: it has no host")
    return Route(scheme=parts.scheme, host=host, port=port, proxy=find_proxy(url, environ))


def create_tls_context(environ: Mapping[str, str]) -> ssl.SSLContext:
    """Return a context that trusts the certificates of the environment, or else those of certifi."""
    file, folder = find_certificates(environ)
    if not (file or folder):
        # Importing certifi for the path takes longer than reading the file.
        from importlib.util import find_spec

        spec = find_spec("certifi")
        file = str(Path(spec.origin).with_name("cacert.pem")) if spec and spec.origin else ""
    context = ssl.create_default_context(cafile=file or None, capath=folder or None)
    context.set_alpn_protocols(["http/1.1"])
    return context


class StreamTransport:
    """A Transport over plain connections and TLS, directly or through an HTTP proxy."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._route_to = cache(partial(find_route, environ=environ))
        self._tls: asyncio.Task[ssl.SSLContext] | None = None
        self._idle: dict[Route, list[tuple[float, Connection]]] = {}
        self._prepared: dict[Route, asyncio.Task[Connection]] = {}

    async def send(self, request: HttpRequest, limits: SendLimits, on_sent: Callable[[], None]) -> HttpResponse:
        route = self._route_to(request.url)
        message = _encode(request, route)
        while True:
            connection, is_used = await self._connect(route, limits.connect_s)
            response: StreamResponse | None = None
            try:
                if not connection.write(message):
                    async with asyncio.timeout(limits.write_s):
                        await connection.flush()
                on_sent()
                response = _open_response(connection, request.method, partial(self._release, route, connection))
                await response.read_head()
            except ModelFault:
                connection.abort()
                # A server may close a connection in the moment it is used again: it has not seen the request.
                if is_used and not (response and response.has_started):
                    continue
                raise
            except OSError as error:
                connection.abort()
                if isinstance(error, TimeoutError):
                    raise
                if not is_used:
                    raise ModelFault("reset", describe_error(error)) from error
            except BaseException:
                connection.abort()
                raise
            else:
                return response

    def prepare(self, url: str, connect_s: float) -> None:
        """Connect in the background, so that the next request to this server need not wait for it."""
        route = self._route_to(url)
        if route not in self._prepared and not any(one.is_idle for _, one in self._idle.get(route, [])):
            task = asyncio.create_task(self._open(route, connect_s))
            # The request itself reports a failure; without a request it does not matter.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._prepared[route] = task

    async def close(self) -> None:
        tasks: list[asyncio.Task[Connection]] = list(self._prepared.values())
        for task in tasks:
            task.cancel()
        opened = await asyncio.gather(*tasks, return_exceptions=True)
        connections = [one for one in opened if isinstance(one, Connection)]
        connections += [one for idle in self._idle.values() for _, one in idle]
        self._prepared, self._idle = {}, {}
        for connection in connections:
            await connection.close()

    async def _connect(self, route: Route, limit_s: float) -> tuple[Connection, bool]:
        """Return a connection, and whether it has been used before."""
        now = asyncio.get_running_loop().time()
        idle = self._idle.get(route, [])
        while idle:
            since, connection = idle.pop()
            if connection.is_idle and now - since < KEEP_ALIVE_S:
                return connection, True
            connection.abort()
        if prepared := self._prepared.pop(route, None):
            try:
                connection = await prepared
            except asyncio.CancelledError:
                prepared.cancel()
                raise
            if connection.is_idle:
                return connection, False
            connection.abort()
        return await self._open(route, limit_s), False

    async def _open(self, route: Route, limit_s: float) -> Connection:
        try:
            async with asyncio.timeout(limit_s):
                return await self._open_route(route)
        except TimeoutError as error:
            raise ModelFault("connect", f"{route.authority}: timed out") from error
        except (OSError, UnicodeError) as error:
            raise ModelFault("connect", f"{route.authority}: {describe_error(error)}") from error

    async def _open_route(self, route: Route) -> Connection:
        tls = await self._tls_context() if route.scheme == "https" else None
        if not route.proxy:
            return await Connection.open(route.host, route.port, tls)
        proxy = urlsplit(route.proxy)
        connection = await Connection.open(proxy.hostname or "", proxy.port or _PORTS["http"])
        if tls is None:
            return connection
        try:
            from agent.model.http.stream_response import open_tunnel

            target = route.authority if route.port != _PORTS[route.scheme] else f"{route.authority}:{route.port}"
            await open_tunnel(connection, target, proxy.hostname, _proxy_headers(proxy))
            await connection.start_tls(tls, route.host)
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _tls_context(self) -> ssl.SSLContext:
        # Reading the certificates takes as long as the rest of a first request, but releases the GIL.
        if self._tls is None:
            self._tls = asyncio.create_task(asyncio.to_thread(create_tls_context, self._environ))
        return await asyncio.shield(self._tls)

    def _release(self, route: Route, connection: Connection) -> None:
        self._idle.setdefault(route, []).append((asyncio.get_running_loop().time(), connection))


def _open_response(connection: Connection, method: str, release: Callable[[], None]) -> "StreamResponse":
    from agent.model.http.stream_response import StreamResponse

    return StreamResponse(connection, method, release)


def _proxy_headers(proxy: SplitResult) -> list[str]:
    if proxy.username is None:
        return []
    secret = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return [f"Proxy-Authorization: Basic {b64encode(secret).decode()}"]


def _encode(request: HttpRequest, route: Route) -> bytes:
    """Return the encoded request; raises ModelFault for an invalid header."""
    parts = urlsplit(request.url)
    path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    target = f"http://{route.authority}{path}" if route.is_forwarded else path
    proxy = _proxy_headers(urlsplit(route.proxy)) if route.is_forwarded else []
    lines = [f"{request.method} {target} HTTP/1.1", f"Host: {route.authority}", *proxy]
    headers = {**request.headers, "Content-Length": len(request.content)}
    lines += [f"{name}: {value}" for name, value in headers.items()]
    text = "".join(lines)
    if not (text.isascii() and text.isprintable()) or " " in target:
        # Not quoted, because the header may be the key.
        raise ModelFault("refused", "the request has an invalid header")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii") + request.content
