"""One request and its streamed reply, with three timeouts: connect, first byte, between chunks."""

import asyncio
from collections.abc import Callable, Mapping
from functools import cache, partial
from urllib.parse import urlsplit

from agent.config.network import find_proxy
from agent.model.deadline import Deadline
from agent.model.faults import FaultKind, ModelFault
from agent.model.http.stream_transport import StreamTransport
from agent.model.http.transport_port import HttpRequest, HttpResponse, SendLimits, Transport
from tooling.contract.fast_dataclass import dataclass

MAX_ERROR_BYTES = 64 * 1024
MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_DOCUMENT_BYTES = 4 * 1024 * 1024
DRAIN_S = 0.25


class Transports:
    """Chooses the transport for each URL; all requests of a run share their connections."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._proxy_for = cache(partial(find_proxy, environ=environ))
        self._stream = StreamTransport(environ)
        self._others: dict[str, Transport] = {}

    def choose(self, url: str) -> Transport:
        """Return the transport for a URL."""
        proxy = self._proxy_for(url)
        if not _is_unusual(url, proxy):
            return self._stream
        if proxy not in self._others:
            from agent.model.http.httpx_transport import HttpxTransport

            self._others[proxy] = HttpxTransport(self._environ, proxy)
        return self._others[proxy]

    def prepare(self, url: str, connect_s: float) -> None:
        """Connect to a server in the background, if possible."""
        if not _is_unusual(url, self._proxy_for(url)):
            self._stream.prepare(url, connect_s)

    async def close(self) -> None:
        """Close all connections; may be called twice."""
        await self._stream.close()
        while self._others:
            _, transport = self._others.popitem()
            await transport.close()


def _is_unusual(url: str, proxy: str) -> bool:
    """Whether a route needs features of httpx: SOCKS, proxies behind TLS, credentials in the URL."""
    return "@" in urlsplit(url).netloc or not (proxy == "" or proxy.startswith("http://"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """The timeout of each phase, in seconds."""

    connect_s: float
    first_byte_s: float
    between_chunks_s: float


class HttpExchange:
    """A request in progress; each kind of failure is raised as its own kind of ModelFault."""

    def __init__(self, transport: Transport, timeouts: Timeouts, on_sent: Callable[[], None] = lambda: None) -> None:
        self._transport = transport
        self._on_sent = on_sent
        self._timeouts = timeouts
        self._response: HttpResponse | None = None
        # Headers without a body are not a reply: the first chunk counts against the first-byte timeout.
        self._deadline = Deadline()
        self._on_timeout: FaultKind = "first_byte"

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send the request and return the response, its body unread."""
        limits = SendLimits(connect_s=self._timeouts.connect_s, write_s=self._timeouts.first_byte_s)
        try:
            with self._deadline:
                self._response = await self._transport.send(request, limits, self._start_clock)
        except TimeoutError as error:
            raise ModelFault("first_byte") from error
        except ModelFault as fault:
            if fault.kind != "reset":
                raise
            raise ModelFault("disconnect", fault.detail) from fault
        return self._response

    def _start_clock(self) -> None:
        self._deadline.move(self._timeouts.first_byte_s)
        self._on_sent()

    async def read_chunk(self) -> bytes:
        """Return the bytes of the body that arrived since the last call; empty at its end."""
        try:
            with self._deadline:
                chunk = await self._body().read_chunk()
        except TimeoutError as error:
            raise ModelFault(self._on_timeout) from error
        self._deadline.move(self._timeouts.between_chunks_s)
        self._on_timeout = "between_chunks"
        return chunk

    async def read_all(self, limit: int = MAX_BODY_BYTES) -> bytes:
        """Return the body, at most `limit` bytes of it."""
        parts: list[bytes] = []
        size = 0
        while chunk := await self.read_chunk():
            parts.append(chunk[: limit - size])
            size += len(parts[-1])
            if size >= limit:
                break
        return b"".join(parts)

    async def error_body(self) -> bytes:
        """Return the body of an error response, empty if it does not arrive."""
        try:
            return await self.read_all(MAX_ERROR_BYTES)
        except ModelFault:
            return b""

    async def drain(self) -> None:
        """Read the rest of a finished reply, so that its connection can be reused."""
        body = self._body()
        if body.is_complete:
            return
        try:
            async with asyncio.timeout(DRAIN_S):
                while await body.read_chunk():
                    pass
        except (TimeoutError, ModelFault):
            return

    async def close(self) -> None:
        """Return the connection to the pool, or close it if the reply was not read completely."""
        self._deadline.close()
        if self._response is not None:
            await self._response.close()

    def _body(self) -> HttpResponse:
        assert self._response is not None, "call send first"
        return self._response


async def fetch(url: str, headers: Mapping[str, str], environ: Mapping[str, str], limit_s: float) -> tuple[int, bytes]:
    """Return the status and the body of a small document. Raises ModelFault."""
    transports = Transports(environ)
    timeouts = Timeouts(connect_s=limit_s, first_byte_s=limit_s, between_chunks_s=limit_s)
    exchange = HttpExchange(transports.choose(url), timeouts)
    try:
        async with asyncio.timeout(limit_s):
            response = await exchange.send(HttpRequest(method="GET", url=url, headers=headers))
            return response.status, await exchange.read_all(MAX_DOCUMENT_BYTES)
    except TimeoutError as error:
        raise ModelFault("first_byte") from error
    finally:
        await exchange.close()
        await transports.close()
