"""The transport of nearly all requests: HTTP/1.1 on asyncio, with connections kept alive."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from os import strerror
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from agent.config.network import find_certificates, find_proxy
from agent.model.faults import ModelFault
from agent.model.http.connection import Connection
from agent.model.http.response_parser import BodyDecoder, IncompleteResponse, ProtocolError, ResponseParser
from agent.model.http.transport_port import HttpRequest, HttpResponse, SendLimits
from tooling.contract.fast_dataclass import dataclass

# Longer than most tools run, so the turns of a step share one connection.
KEEP_ALIVE_S = 120.0
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where a connection leads: the server, and the proxy on the way, empty if there is none."""

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
    """Return the route to a URL. Raises ModelFault if it is no URL of a server."""
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
    """Return a context that trusts the certificates the environment names, or else those of certifi."""
    file, folder = find_certificates(environ)
    if not (file or folder):
        # Importing certifi to ask it for the path takes longer than reading the file.
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
        self._tls: asyncio.Task[ssl.SSLContext] | None = None
        self._idle: dict[Route, list[tuple[float, Connection]]] = {}
        self._prepared: dict[Route, asyncio.Task[Connection]] = {}

    async def send(self, request: HttpRequest, limits: SendLimits, on_sent: Callable[[], None]) -> HttpResponse:
        route = find_route(request.url, self._environ)
        message = _encode(request, route)
        while True:
            connection, is_used = await self._connect(route, limits.connect_s)
            response = StreamResponse(connection, request.method, partial(self._release, route, connection))
            try:
                async with asyncio.timeout(limits.write_s):
                    await connection.write(message)
                on_sent()
                await response.read_head()
            except ModelFault:
                connection.abort()
                # A server may close a connection in the moment it is used again: it has not seen the request.
                if is_used and not response.has_started:
                    continue
                raise
            except OSError as error:
                connection.abort()
                if isinstance(error, TimeoutError):
                    raise
                if not is_used:
                    raise ModelFault("reset", _describe(error)) from error
            except BaseException:
                connection.abort()
                raise
            else:
                return response

    def prepare(self, url: str, connect_s: float) -> None:
        """Connect in the background, so that the next request to this server need not wait for it."""
        route = find_route(url, self._environ)
        if route not in self._prepared and not any(one.is_idle for _, one in self._idle.get(route, [])):
            task = asyncio.create_task(self._open(route, connect_s))
            # Whoever sends a request hears of a failure; without one nobody needs to.
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
            raise ModelFault("connect", f"{route.authority}: {_describe(error)}") from error

    async def _open_route(self, route: Route) -> Connection:
        tls = await self._tls_context() if route.scheme == "https" else None
        if not route.proxy:
            return await Connection.open(route.host, route.port, tls)
        proxy = urlsplit(route.proxy)
        connection = await Connection.open(proxy.hostname or "", proxy.port or _PORTS["http"])
        if tls is None:
            return connection
        try:
            await _open_tunnel(connection, route, proxy)
            await connection.start_tls(tls, route.host)
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _tls_context(self) -> ssl.SSLContext:
        # Reading the certificates takes as long as the rest of a first request, but not the interpreter's lock.
        if self._tls is None:
            self._tls = asyncio.create_task(asyncio.to_thread(create_tls_context, self._environ))
        return await asyncio.shield(self._tls)

    def _release(self, route: Route, connection: Connection) -> None:
        self._idle.setdefault(route, []).append((asyncio.get_running_loop().time(), connection))


class StreamResponse:
    """A response read from a connection, which goes back to the pool after its last byte."""

    def __init__(self, connection: Connection, method: str, release: Callable[[], None]) -> None:
        self._connection = connection
        self._release = release
        self._parser = ResponseParser(method)
        self._pieces: list[bytes] = []
        self._decoder = BodyDecoder("")
        self._is_closed = False
        self.status = 0
        self.headers: Mapping[str, str] = {}

    @property
    def has_started(self) -> bool:
        return self._parser.has_started

    async def read_head(self) -> None:
        """Wait for status and headers."""
        while not self._parser.is_head_complete:
            await self._receive()
        self.status, self.headers = self._parser.status, self._parser.headers
        with _protocol_faults():
            self._decoder = BodyDecoder(self.headers.get("content-encoding", ""))

    async def read_chunk(self) -> bytes:
        with _protocol_faults():
            while not (data := self._decoder.take()):
                if self._pieces:
                    self._decoder.feed(self._pieces.pop(0))
                elif self._parser.is_complete:
                    self._decoder.finish()
                    return b""
                else:
                    await self._receive()
            return data

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._parser.is_complete and self._parser.can_reuse and self._connection.is_idle:
            self._release()
        else:
            await self._connection.close()

    async def _receive(self) -> None:
        with _protocol_faults():
            if data := await self._connection.read():
                self._pieces += self._parser.feed(data)
            else:
                self._parser.finish()


@contextmanager
def _protocol_faults() -> Iterator[None]:
    try:
        yield
    except ProtocolError as error:
        raise ModelFault("malformed", str(error)) from error
    except IncompleteResponse as error:
        raise ModelFault("reset", "the server closed the connection") from error
    except TimeoutError:
        raise
    except OSError as error:
        raise ModelFault("reset", _describe(error)) from error


async def _open_tunnel(connection: Connection, route: Route, proxy: SplitResult) -> None:
    target = f"{route.authority}" if route.port != _PORTS[route.scheme] else f"{route.authority}:{route.port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", *_proxy_headers(proxy)]
    await connection.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    parser = ResponseParser("CONNECT")
    while not parser.is_head_complete:
        data = await connection.read()
        try:
            parser.feed(data) if data else parser.finish()
        except (ProtocolError, IncompleteResponse) as error:
            raise ConnectionResetError(f"the proxy {proxy.hostname} did not open a tunnel") from error
    if not 200 <= parser.status < 300:
        raise ConnectionRefusedError(0, f"the proxy {proxy.hostname} answered {parser.status}")


def _proxy_headers(proxy: SplitResult) -> list[str]:
    if proxy.username is None:
        return []
    secret = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return [f"Proxy-Authorization: Basic {b64encode(secret).decode()}"]


def _encode(request: HttpRequest, route: Route) -> bytes:
    """Return the request as it is sent; raises ModelFault if a header cannot be."""
    parts = urlsplit(request.url)
    path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    target = f"http://{route.authority}{path}" if route.is_forwarded else path
    lines = [f"{request.method} {target} HTTP/1.1", f"Host: {route.authority}"]
    if route.is_forwarded:
        lines += _proxy_headers(urlsplit(route.proxy))
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    lines.append(f"Content-Length: {len(request.content)}")
    if not all(line.isascii() and line.isprintable() for line in lines) or " " in target:
        # The header may be the key: it is not quoted.
        raise ModelFault("refused", "the request has an invalid header")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii") + request.content


def _describe(error: Exception) -> str:
    """Return why a connection failed, without the address that asyncio repeats."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    number = getattr(error, "errno", None)
    if isinstance(number, int) and number > 0 and not isinstance(error, ssl.SSLError):
        return strerror(number)
    return getattr(error, "strerror", None) or str(error) or "the connection was lost"
