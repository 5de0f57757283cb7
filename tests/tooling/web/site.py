"""A loopback web site that sends raw bytes, so that it can misbehave in every way a server can."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from tooling.web.addresses.url_check import Resolver
from tooling.web.http.web_client import WebClient
from tooling.web.settings import WebSettings

Send: TypeAlias = Callable[[bytes], Awaitable[None]]
SiteResponse: TypeAlias = bytes | Callable[["SiteRequest", Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRequest:
    """One request as received."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Site:
    """Responds by path and records requests; connections are kept alive."""

    def __init__(self, pages: dict[str, SiteResponse] | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.pages: dict[str, SiteResponse] = dict(pages or {})
        self.requests: list[SiteRequest] = []
        self.connections = 0
        self.port = 0
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}{path}"

    async def __aenter__(self) -> "Site":
        self._server = await asyncio.start_server(self._handle_connection, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1

        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        try:
            while True:
                await self._respond(await _read_request(reader), send)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError, EOFError):
            # Clients disconnect and tests end; neither is an error.
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _respond(self, request: SiteRequest, send: Send) -> None:
        self.requests.append(request)
        response = self.pages.get(request.path) or self.pages.get("*") or http_response("not here", status=404)
        if isinstance(response, bytes):
            await send(response)
        else:
            await response(request, send)
            raise EOFError


async def _read_request(reader: asyncio.StreamReader) -> SiteRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return SiteRequest(method=method, path=path, headers=headers, body=body)


def http_response(body: str | bytes, *headers: str, status: int = 200, kind: str = "text/html; charset=utf-8") -> bytes:
    """Return a complete response."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Reason", *([f"Content-Type: {kind}"] if kind else []), *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""]).encode("latin-1") + data


def response_head(*headers: str, status: int = 200) -> bytes:
    """Return the head of a response whose body ends with the connection."""
    return "\r\n".join([f"HTTP/1.1 {status} Reason", *headers, "Connection: close", "", ""]).encode("latin-1")


def redirect(location: str, status: int = 302) -> bytes:
    return http_response("", f"Location: {location}", status=status)


def fake_resolver(**hosts: str | Sequence[str]) -> Resolver:
    """Return a resolver that knows only `host_name=address`; underscores in the name stand for dots."""
    known = {name.replace("_", "."): addresses for name, addresses in hosts.items()}

    async def resolve(host: str, port: int) -> Sequence[str]:
        if host not in known:
            raise OSError(f"{host} is not known here")
        addresses = known[host]
        return [addresses] if isinstance(addresses, str) else addresses

    return resolve


@asynccontextmanager
async def open_client(
    *,
    resolver: Resolver | None = None,
    tls: Callable[[], ssl.SSLContext] | None = None,
    allow_loopback: bool = True,
    connect_timeout_s: float = 5.0,
    timeout_s: float = 10.0,
    max_bytes: int = 5_000_000,
    **others: object,
) -> AsyncIterator[WebClient]:
    """Open a client for loopback sites."""
    settings = WebSettings(
        allow_loopback=allow_loopback,
        connect_timeout_s=connect_timeout_s,
        timeout_s=timeout_s,
        max_bytes=max_bytes,
        **others,  # type: ignore[arg-type]
    )
    client = WebClient(settings, resolver=resolver, **({"tls": tls} if tls else {}))
    try:
        yield client
    finally:
        await client.close()
