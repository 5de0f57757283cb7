"""One client connection of the egress proxy: reads a request, checks it, reports it, and forwards or refuses it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import field
from http import HTTPStatus
from typing import TypeAlias

from agent.backends.egress.host_rules import EgressRules, ProxyMode
from agent.backends.egress.proxy_http import (
    ProxyHttpError,
    Request,
    build_error_response,
    build_request_head,
    parse_request,
    rewrite_response_head,
)
from agent.backends.egress.stream import (
    CHUNK_BYTES,
    EgressLimits,
    IdleTimeout,
    Peer,
    copy_body,
    copy_until_end,
    pipe_both_ways,
    read_head,
    run_concurrently,
)
from agent.backends.egress.tls_sni import MAX_HELLO_BYTES, ClientHelloError, parse_server_name
from tooling.contract.fast_dataclass import dataclass
from tooling.web.addresses.hostnames import HostInvalid, normalize_host
from tooling.web.addresses.url_check import AddressRefused, HostUnknown, Resolver, parse_url, resolve_public
from tooling.web.network_attempt import NetworkAttempt, OnAttempt

MAX_ADDRESSES_TRIED = 4
NO_CLIENT_HELLO = "no TLS ClientHello was received in time"

Connect: TypeAlias = Callable[[str, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyConfig:
    """Functions and limits for checking, resolving and connecting to destinations."""

    rules: EgressRules
    resolver: Resolver | None = None
    connect: Connect = asyncio.open_connection
    allow_loopback: bool = False
    limits: EgressLimits = field(default_factory=EgressLimits)


class ProxyConnection:
    """One connection with one request, which is reported once."""

    def __init__(self, client: Peer, config: ProxyConfig, on_attempt: OnAttempt) -> None:
        self._client = client
        self._config = config
        self._limits = config.limits
        self._on_attempt = on_attempt
        self._host, self._port = "", 0
        self._is_reported = False
        self._has_responded = False

    async def run(self) -> None:
        """Serve the client until its end; never raises for its errors."""
        try:
            async with asyncio.timeout(self._limits.total_s):
                await self._serve()
        except ProxyHttpError as error:
            await self.refuse(error)
        except (OSError, TimeoutError):
            # A peer that disconnects or times out ends only this connection.
            pass
        finally:
            self._client.abort()

    async def refuse(self, error: ProxyHttpError) -> None:
        """Report the refusal, and send an error response unless a response was already started."""
        await self._report(error.reason, allowed=False)
        if not self._has_responded:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(self._limits.head_s):
                    await self._client.send(build_error_response(error.status, error.reason))
                await self._client.close_gracefully()

    async def _serve(self) -> None:
        try:
            async with asyncio.timeout(self._limits.head_s):
                head = await read_head(self._client)
        except TimeoutError as error:
            raise ProxyHttpError(HTTPStatus.REQUEST_TIMEOUT, "no complete request was received in time") from error
        if head is None:
            return
        request = parse_request(head)
        if request.method == "CONNECT":
            await self._tunnel(request)
        else:
            await self._forward(request)

    async def _tunnel(self, request: Request) -> None:
        host, _, port = request.target.rpartition(":")
        self._host = host[:255]
        try:
            self._host, self._port = normalize_host(host), int(port) if port.isdigit() and len(port) <= 5 else 0
        except HostInvalid as error:
            raise ProxyHttpError(HTTPStatus.BAD_REQUEST, str(error)) from error
        reason = self._check_rules("tunnel")
        server = await self._connect(reason)
        try:
            self._has_responded = True
            await self._client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            hello = await self._read_client_hello()
            await self._report(reason, allowed=True)
            await server.send(hello)
            await pipe_both_ways(self._client, server, self._limits)
        finally:
            server.abort()

    async def _forward(self, request: Request) -> None:
        self._host = request.target[:255]
        try:
            target = parse_url(request.target, allow_loopback=self._config.allow_loopback)
        except AddressRefused as error:
            raise ProxyHttpError(
                HTTPStatus.BAD_REQUEST, f"this proxy cannot request this URL: {error.reason}"
            ) from error
        self._host, self._port = target.host, target.port
        if target.scheme != "http":
            raise ProxyHttpError(HTTPStatus.BAD_REQUEST, "this proxy accepts https with CONNECT only")
        reason = self._check_rules("plain")
        server = await self._connect(reason)
        try:
            await self._report(reason, allowed=True)
            await server.send(build_request_head(request, target))
            async with asyncio.timeout(self._limits.idle_s) as timeout:
                touch = IdleTimeout(timeout, self._limits).touch
                body = copy_body(self._client, server, request.framing, touch)
                await run_concurrently(body, self._forward_response(server, touch))
            await self._client.close_gracefully()
        finally:
            server.abort()

    async def _forward_response(self, server: Peer, touch: Callable[[], None]) -> None:
        status = 0
        while status < HTTPStatus.OK:
            head = await read_head(server)
            if head is None:
                raise ProxyHttpError(HTTPStatus.BAD_GATEWAY, "the server closed the connection without a response")
            status, head = rewrite_response_head(head)
            self._has_responded = True
            await self._client.send(head)
            touch()
        await copy_until_end(server, self._client, touch)

    async def _read_client_hello(self) -> bytes:
        """Read the TLS ClientHello; a server name other than the checked host would bypass the rules."""
        data, name = b"", None
        try:
            async with asyncio.timeout(self._limits.head_s):
                while name is None and len(data) < MAX_HELLO_BYTES:
                    chunk = await self._client.reader.read(CHUNK_BYTES)
                    if not chunk:
                        raise ProxyHttpError(HTTPStatus.BAD_REQUEST, "the tunnel was closed before a TLS ClientHello")
                    data += chunk
                    name = parse_server_name(data)
        except TimeoutError as error:
            raise ProxyHttpError(HTTPStatus.REQUEST_TIMEOUT, NO_CLIENT_HELLO) from error
        except ClientHelloError as error:
            raise ProxyHttpError(HTTPStatus.BAD_REQUEST, str(error)) from error
        if name != self._host:
            shown = f"{name!r}" if name else "no server"
            raise ProxyHttpError(HTTPStatus.FORBIDDEN, f"the TLS client asks for {shown} instead of {self._host}")
        return data

    def _check_rules(self, mode: ProxyMode) -> str:
        decision = self._config.rules.decide(self._host, self._port, mode=mode)
        if not decision.allowed:
            raise ProxyHttpError(HTTPStatus.FORBIDDEN, decision.reason)
        return decision.reason

    async def _connect(self, reason: str) -> Peer:
        try:
            async with asyncio.timeout(self._limits.connect_s):
                return await self._connect_any(await self._resolve(reason))
        except TimeoutError as error:
            await self._report(f"{reason}, but the connection took too long", allowed=True)
            raise ProxyHttpError(HTTPStatus.GATEWAY_TIMEOUT, f"{self._host} does not respond") from error
        except OSError as error:
            await self._report(f"{reason}, but the connection failed: {error.strerror or error}", allowed=True)
            raise ProxyHttpError(HTTPStatus.BAD_GATEWAY, f"{self._host} cannot be reached") from error

    async def _resolve(self, reason: str) -> tuple[str, ...]:
        try:
            return await resolve_public(
                self._host, self._port, resolver=self._config.resolver, allow_loopback=self._config.allow_loopback
            )
        except HostUnknown as error:
            await self._report(f"{reason}, but {error.reason}", allowed=True)
            raise ProxyHttpError(HTTPStatus.BAD_GATEWAY, f"{self._host} could not be resolved") from error
        except AddressRefused as error:
            await self._report(error.reason, allowed=False)
            # Commands must not learn the addresses of private names.
            raise ProxyHttpError(HTTPStatus.FORBIDDEN, f"{self._host} does not resolve to a public address") from error

    async def _connect_any(self, addresses: tuple[str, ...]) -> Peer:
        tried = addresses[:MAX_ADDRESSES_TRIED]
        timeout_s = self._limits.connect_s / len(tried)
        for address in tried[:-1]:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(timeout_s):
                    return Peer(*await self._config.connect(address, self._port))
        return Peer(*await self._config.connect(tried[-1], self._port))

    async def _report(self, reason: str, *, allowed: bool) -> None:
        """Report the attempt once, and wait until the report is stored."""
        if not self._is_reported:
            self._is_reported = True
            attempt = NetworkAttempt(host=self._host, port=self._port, allowed=allowed, reason=reason)
            if stored := self._on_attempt(attempt):
                await stored
