"""One client at the egress proxy: what it asks for is read, judged, told of, and then carried or refused."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import field
from http import HTTPStatus
from typing import TypeAlias

from agent.backends.egress.host_rules import EgressRules, Way
from agent.backends.egress.proxy_http import Request, WireFault, forwarded_head, read_request, refusal, returned_head
from agent.backends.egress.stream import (
    CHUNK_BYTES,
    EgressLimits,
    IdleClock,
    Peer,
    copy_body,
    copy_until_end,
    join,
    read_head,
    together,
)
from agent.backends.egress.tls_sni import MOST_HELLO_BYTES, HelloInvalid, server_name
from tooling.contract.fast_dataclass import dataclass
from tooling.web.addresses.hostnames import HostInvalid, normal_host
from tooling.web.addresses.url_check import AddressRefused, HostUnknown, Resolver, parse_url, resolve_public
from tooling.web.network_attempt import Attempt

MOST_ADDRESSES_TRIED = 4

Connect: TypeAlias = Callable[[str, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """How destinations are judged, found and reached."""

    rules: EgressRules
    resolver: Resolver | None = None
    connect: Connect = asyncio.open_connection
    allow_loopback: bool = False
    limits: EgressLimits = field(default_factory=EgressLimits)


class Visit:
    """One connection, one request, one telling of it."""

    def __init__(self, client: Peer, way_out: WayOut, on_attempt: Callable[[Attempt], None]) -> None:
        self._client = client
        self._way_out = way_out
        self._limits = way_out.limits
        self._on_attempt = on_attempt
        self._host, self._port = "", 0
        self._is_told = False
        self._is_answered = False

    async def run(self) -> None:
        """Serve the client to its end, whatever it does."""
        try:
            async with asyncio.timeout(self._limits.total_s):
                await self._serve()
        except WireFault as fault:
            await self.refuse(fault)
        except (OSError, TimeoutError):
            # A side that leaves or falls silent ends its own connection and nothing else.
            pass
        finally:
            self._client.drop()

    async def refuse(self, fault: WireFault) -> None:
        """Tell of the refusal, and answer while an answer can still be read as one."""
        self._tell(fault.reason, allowed=False)
        if not self._is_answered:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(self._limits.head_s):
                    await self._client.send(refusal(fault.status, fault.reason))
                await self._client.part()

    async def _serve(self) -> None:
        try:
            async with asyncio.timeout(self._limits.head_s):
                head = await read_head(self._client)
        except TimeoutError as error:
            raise WireFault(HTTPStatus.REQUEST_TIMEOUT, "no whole request came in time") from error
        if head is None:
            return
        request = read_request(head)
        if request.method == "CONNECT":
            await self._tunnel(request)
        else:
            await self._forward(request)

    async def _tunnel(self, request: Request) -> None:
        host, _, port = request.target.rpartition(":")
        self._host = host[:255]
        try:
            self._host, self._port = normal_host(host), int(port) if port.isdigit() and len(port) <= 5 else 0
        except HostInvalid as error:
            raise WireFault(HTTPStatus.BAD_REQUEST, str(error)) from error
        reason = self._judge("tunnel")
        server = await self._reach(reason)
        try:
            self._is_answered = True
            await self._client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            hello = await self._hello()
            self._tell(reason, allowed=True)
            await server.send(hello)
            await join(self._client, server, self._limits)
        finally:
            server.drop()

    async def _forward(self, request: Request) -> None:
        self._host = request.target[:255]
        try:
            target = parse_url(request.target, allow_loopback=self._way_out.allow_loopback)
        except AddressRefused as error:
            raise WireFault(HTTPStatus.BAD_REQUEST, f"this proxy cannot request that: {error.reason}") from error
        self._host, self._port = target.host, target.port
        if target.scheme != "http":
            raise WireFault(HTTPStatus.BAD_REQUEST, "https goes through this proxy with CONNECT only")
        reason = self._judge("plain")
        server = await self._reach(reason)
        try:
            self._tell(reason, allowed=True)
            await server.send(forwarded_head(request, target))
            async with asyncio.timeout(self._limits.idle_s) as timeout:
                touch = IdleClock(timeout, self._limits).touch
                body = copy_body(self._client, server, request.framing, touch)
                await together(body, self._answer(server, touch))
            await self._client.part()
        finally:
            server.drop()

    async def _answer(self, server: Peer, touch: Callable[[], None]) -> None:
        status = 0
        while status < HTTPStatus.OK:
            head = await read_head(server)
            if head is None:
                raise WireFault(HTTPStatus.BAD_GATEWAY, "the server ended without an answer")
            status, head = returned_head(head)
            self._is_answered = True
            await self._client.send(head)
            touch()
        await copy_until_end(server, self._client, touch)

    async def _hello(self) -> bytes:
        """Read the TLS greeting; a name other than the one that was judged would lead behind the rules' back."""
        data, name = b"", None
        try:
            async with asyncio.timeout(self._limits.head_s):
                while name is None and len(data) < MOST_HELLO_BYTES:
                    more = await self._client.reader.read(CHUNK_BYTES)
                    if not more:
                        raise WireFault(HTTPStatus.BAD_REQUEST, "the tunnel ended before a TLS greeting")
                    data += more
                    name = server_name(data)
        except TimeoutError as error:
            raise WireFault(HTTPStatus.REQUEST_TIMEOUT, "no TLS greeting came in time") from error
        except HelloInvalid as error:
            raise WireFault(HTTPStatus.BAD_REQUEST, str(error)) from error
        if name != self._host:
            shown = f"{name!r}" if name else "no server"
            raise WireFault(HTTPStatus.FORBIDDEN, f"the TLS greeting names {shown} instead of {self._host}")
        return data

    def _judge(self, way: Way) -> str:
        decision = self._way_out.rules.decide(self._host, self._port, way=way)
        if not decision.allowed:
            raise WireFault(HTTPStatus.FORBIDDEN, decision.reason)
        return decision.reason

    async def _reach(self, reason: str) -> Peer:
        try:
            async with asyncio.timeout(self._limits.connect_s):
                return await self._first_connection(await self._addresses(reason))
        except TimeoutError as error:
            self._tell(f"{reason}, but the connection took too long", allowed=True)
            raise WireFault(HTTPStatus.GATEWAY_TIMEOUT, f"{self._host} does not answer") from error
        except OSError as error:
            self._tell(f"{reason}, but the connection failed: {error.strerror or error}", allowed=True)
            raise WireFault(HTTPStatus.BAD_GATEWAY, f"{self._host} cannot be reached") from error

    async def _addresses(self, reason: str) -> tuple[str, ...]:
        try:
            return await resolve_public(
                self._host, self._port, resolver=self._way_out.resolver, allow_loopback=self._way_out.allow_loopback
            )
        except HostUnknown as error:
            self._tell(f"{reason}, but {error.reason}", allowed=True)
            raise WireFault(HTTPStatus.BAD_GATEWAY, f"{self._host} could not be resolved") from error
        except AddressRefused as error:
            self._tell(error.reason, allowed=False)
            # Inside the box nobody needs to learn what private names resolve to.
            raise WireFault(HTTPStatus.FORBIDDEN, f"{self._host} does not lead to a public address") from error

    async def _first_connection(self, addresses: tuple[str, ...]) -> Peer:
        tried = addresses[:MOST_ADDRESSES_TRIED]
        patience_s = self._limits.connect_s / len(tried)
        for address in tried[:-1]:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(patience_s):
                    return Peer(*await self._way_out.connect(address, self._port))
        return Peer(*await self._way_out.connect(tried[-1], self._port))

    def _tell(self, reason: str, *, allowed: bool) -> None:
        if not self._is_told:
            self._is_told = True
            self._on_attempt(Attempt(host=self._host, port=self._port, allowed=allowed, reason=reason))
