"""The one client for all that tools ask of the web: checked addresses on every hop, limits while reading."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urljoin

import httpcore

from tooling.web.address import AddressRefused, HostUnknown, Resolver, Target, is_loopback_url, parse_url
from tooling.web.body import BodyReader
from tooling.web.exchange import WebFault, WebRequest, WebResponse
from tooling.web.lean_httpx import httpx
from tooling.web.pinned import CheckedNetwork, PinnedTransport
from tooling.web.settings import WebSettings

MOST_REDIRECTS = 5
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_KEEPS_METHOD = frozenset((307, 308))
# What a server may see again after a redirect to another origin; everything else could be a secret.
_HARMLESS_HEADERS = frozenset(("accept", "accept-language"))


class WebClient:
    """Sends requests; connections are kept for the length of a run, cookies are not kept at all.

    It speaks to its transports directly: httpx's own client would look into the environment for proxies and logins,
    keep cookies, and read the address of a redirect before we have.
    """

    def __init__(
        self,
        settings: WebSettings,
        *,
        resolver: Resolver | None = None,
        tls: Callable[[], ssl.SSLContext] = httpx.create_ssl_context,
    ) -> None:
        self._settings = settings
        self._resolver = resolver
        self._tls = tls
        self._transports: dict[tuple[bool, bool], asyncio.Future[PinnedTransport]] = {}

    async def send(self, request: WebRequest) -> WebResponse:
        """Send a request, follow its redirects, read the answer up to its limit; raise WebFault when that fails."""
        limit_s = request.timeout_s or self._settings.timeout_s
        try:
            async with asyncio.timeout(limit_s) as clock:
                return await self._follow(request)
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise WebFault("timeout", f"the answer took longer than {limit_s:g} s") from error

    async def close(self) -> None:
        """Close all connections; harmless twice."""
        while self._transports:
            _, transport = self._transports.popitem()
            await (await transport).aclose()

    async def _follow(self, request: WebRequest) -> WebResponse:
        target = self._checked(request.url, request)
        method, body, headers = request.method, request.body, dict(request.headers)
        seen = {(method, target.url)}
        for _ in range(MOST_REDIRECTS + 1):
            async with self._sent(target, method, headers, body, request) as response:
                location = response.headers.get("location", "")
                if response.status_code not in _REDIRECTS or not location:
                    return await self._read(target, response, request)
                status = response.status_code
            following = await self._next(target, location, request)
            if status not in _KEEPS_METHOD and method != "GET":
                method, body = "GET", None
            if _origin(following) != _origin(target):
                headers = {name: value for name, value in headers.items() if name.lower() in _HARMLESS_HEADERS}
            target = following
            if (method, target.url) in seen:
                raise WebFault("redirects", f"the redirects go in a circle, back to {target.url}")
            seen.add((method, target.url))
        raise WebFault("redirects", f"there are more than {MOST_REDIRECTS} redirects")

    async def _next(self, target: Target, location: str, request: WebRequest) -> Target:
        # Servers forget to encode blanks; a browser does it for them.
        place = urljoin(target.url, location.strip().replace(" ", "%20"))
        following = self._checked(place, request, f"{target.host} redirects: ")
        if target.scheme == "https" and following.scheme == "http":
            raise WebFault("redirects", f"{target.host} redirects from https to http, {following.url}")
        if request.is_trusted and _origin(following) != _origin(target):
            raise WebFault("redirects", f"{target.host} redirects to another place, {following.host}")
        if request.gate and following.host != target.host and (why_not := await request.gate(following)):
            raise WebFault("denied", why_not)
        return following

    def _checked(self, url: str, request: WebRequest, place: str = "") -> Target:
        try:
            return parse_url(url, allow_loopback=self._settings.allow_loopback or _is_own_loopback(request))
        except AddressRefused as error:
            raise WebFault("refused", f"{place}{error.reason}") from error

    @asynccontextmanager
    async def _sent(
        self, target: Target, method: str, headers: Mapping[str, str], body: bytes | None, request: WebRequest
    ) -> AsyncIterator[httpx.Response]:
        transport = await self._transport(is_https=target.scheme == "https", is_own=_is_own_loopback(request))
        own = {"User-Agent": self._settings.user_agent, "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
        clocks = {"connect": self._settings.connect_timeout_s}
        try:
            outgoing = httpx.Request(
                method, target.url, headers=own | dict(headers), content=body, extensions={"timeout": clocks}
            )
            response = await transport.handle_async_request(outgoing)
            try:
                yield response
            finally:
                await response.aclose()
        except Exception as error:
            fault = _fault(error, target, self._settings.connect_timeout_s)
            if fault is None:
                raise
            raise fault from error

    async def _read(self, target: Target, response: httpx.Response, request: WebRequest) -> WebResponse:
        limit = request.max_bytes or self._settings.max_bytes
        reader = BodyReader(response.headers.get("content-encoding", ""), limit)
        async for chunk in response.aiter_raw():
            if not reader.feed(chunk):
                break
        return WebResponse(
            url=target.url,
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=reader.data,
            is_cut=reader.is_cut,
            is_bomb=reader.is_bomb,
        )

    async def _transport(self, *, is_https: bool, is_own: bool) -> PinnedTransport:
        kind = (is_https, is_own)
        if kind not in self._transports:
            self._transports[kind] = asyncio.ensure_future(self._new_transport(is_https=is_https, is_own=is_own))
        return await asyncio.shield(self._transports[kind])

    async def _new_transport(self, *, is_https: bool, is_own: bool) -> PinnedTransport:
        # Reading the certificates takes long enough for others to notice.
        tls = await asyncio.to_thread(self._tls) if is_https else None
        network = CheckedNetwork(allow_loopback=is_own or self._settings.allow_loopback, resolver=self._resolver)
        return PinnedTransport(network, tls)


def _is_own_loopback(request: WebRequest) -> bool:
    """Say whether the user configured an endpoint on this very machine: writing its address is the permission."""
    return request.is_trusted and is_loopback_url(request.url)


def _origin(target: Target) -> tuple[str, str, int]:
    return target.scheme, target.host, target.port


def _fault(error: Exception, target: Target, connect_s: float) -> WebFault | None:
    """Return what went wrong in words, or None for what is no failure of the request."""
    match error:
        case HostUnknown():
            return WebFault("unknown_host", error.reason)
        case AddressRefused():
            return WebFault("refused", error.reason)
        case httpcore.ConnectTimeout() | httpx.ConnectTimeout():
            return WebFault("timeout", f"{target.host} did not answer within {connect_s:g} s")
        case httpcore.ConnectError() | httpx.ConnectError():
            return _unconnected(error, target)
        case httpcore.TimeoutException() | httpx.TimeoutException():
            return WebFault("timeout", f"{target.host} took too long")
        case httpcore.NetworkError() | httpcore.ProtocolError() | httpx.TransportError() | httpx.InvalidURL():
            return WebFault("broken", f"{target.host} broke off or did not answer in HTTP ({error or 'no more data'})")
        case _:
            return None


def _unconnected(error: Exception, target: Target) -> WebFault:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLError):
        why = getattr(cause, "verify_message", "") or cause.reason or "TLS failed"
        return WebFault("tls", f"the connection to {target.host} cannot be trusted ({why})")
    return WebFault("unreachable", f"{target.host} cannot be reached on port {target.port} ({error})")
