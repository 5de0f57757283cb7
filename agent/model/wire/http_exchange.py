"""One POST and its streamed reply, with three timeouts: connect, first byte, between chunks."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from agent.model.faults import FaultKind, ModelFault
from tooling.contract.fast_dataclass import dataclass
from tooling.web.http.httpx_import import httpx

MAX_ERROR_BYTES = 64 * 1024
MAX_BODY_BYTES = 32 * 1024 * 1024
DRAIN_S = 0.25
_REQUEST_SENT = "http11.send_request_body.complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """The timeout of each phase, in seconds."""

    connect_s: float
    first_byte_s: float
    between_chunks_s: float


class HttpExchange:
    """A request in progress; each kind of failure is raised as its own kind of ModelFault."""

    def __init__(self, client: httpx.AsyncClient, timeouts: Timeouts) -> None:
        self._client = client
        self._timeouts = timeouts
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._deadline: float | None = None

    async def send(self, url: str, headers: Mapping[str, str], content: bytes) -> httpx.Response:
        """Send the request and return the response, its body unread."""
        timeout = httpx.Timeout(None, connect=self._timeouts.connect_s, write=self._timeouts.first_byte_s)
        with _map_errors("first_byte", url):
            async with asyncio.timeout(None) as clock:

                async def on_event(name: str, info: Mapping[str, object]) -> None:
                    if name == _REQUEST_SENT:
                        self._deadline = asyncio.get_running_loop().time() + self._timeouts.first_byte_s
                        clock.reschedule(self._deadline)

                request = self._client.build_request(
                    "POST", url, headers=dict(headers), content=content, timeout=timeout, extensions={"trace": on_event}
                )
                self._response = await self._client.send(request, stream=True)
        self._chunks = aiter(self._response.aiter_bytes())
        return self._response

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives."""
        # Headers without a body are not a reply: the first chunk counts against the first-byte timeout.
        deadline, on_timeout = self._deadline, _FIRST
        while chunk := await self._next_chunk(deadline, on_timeout):
            yield chunk
            deadline, on_timeout = asyncio.get_running_loop().time() + self._timeouts.between_chunks_s, _LATER

    async def read_all(self, limit: int = MAX_BODY_BYTES) -> bytes:
        """Return the body, at most `limit` bytes of it."""
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
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
        try:
            async with asyncio.timeout(DRAIN_S):
                while await anext(self._body(), b""):
                    pass
        except (TimeoutError, httpx.HTTPError):
            return

    async def close(self) -> None:
        """Return the connection to the pool, or close it if the reply was not read completely."""
        if self._response is not None:
            await self._response.aclose()

    def _body(self) -> AsyncIterator[bytes]:
        assert self._chunks is not None, "call send first"
        return self._chunks

    async def _next_chunk(self, deadline: float | None, on_timeout: FaultKind) -> bytes:
        with _map_errors(on_timeout, ""):
            async with asyncio.timeout_at(deadline):
                return await anext(self._body(), b"")


_FIRST: FaultKind = "first_byte"
_LATER: FaultKind = "between_chunks"


@contextmanager
def _map_errors(on_timeout: FaultKind, url: str) -> Iterator[None]:
    try:
        yield
    except (TimeoutError, httpx.ReadTimeout, httpx.WriteTimeout) as error:
        raise ModelFault(on_timeout) from error
    except (httpx.ConnectTimeout, httpx.ConnectError, httpx.ProxyError, httpx.PoolTimeout) as error:
        raise ModelFault("connect", f"{urlsplit(url).netloc}: {error or 'timed out'}") from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError) as error:
        raise ModelFault("connect", f"{url!r} is not a URL: {error}") from error
    except httpx.DecodingError as error:
        raise ModelFault("malformed", str(error)) from error
    except httpx.LocalProtocolError as error:
        # Its message quotes the invalid header, which may be the key.
        raise ModelFault("refused", "the request has an invalid header") from error
    except (httpx.TransportError, OSError) as error:
        raise ModelFault("reset", str(error)) from error
