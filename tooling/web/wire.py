"""One exchange with one server: over checked connections, read up to a limit, every failure in words."""

import asyncio
import ssl
from collections.abc import Callable, Mapping

import httpcore

from tooling.web.addresses.url_check import AddressRefused, HostUnknown, Resolver, Target
from tooling.web.attempt import Attempt
from tooling.web.http.body import BodyReader
from tooling.web.http.httpx_import import httpx
from tooling.web.http.messages import WebFault, WebResponse
from tooling.web.http.transport import CheckedNetwork, PinnedTransport
from tooling.web.settings import WebSettings

MOST_PASSED_OVER = 32_768
_BREATH = 64
_PASSED_OVER = frozenset((204, 301, 302, 303, 304, 307, 308))


class Wire:
    """Talks to servers.

    It speaks to its transports directly: httpx's own client would look into the environment for proxies and logins,
    keep cookies, and read the address of a redirect before we have.
    """

    def __init__(
        self,
        settings: WebSettings,
        *,
        resolver: Resolver | None,
        tls: Callable[[], ssl.SSLContext],
        on_attempt: Callable[[Attempt], None] | None = None,
    ) -> None:
        self._settings = settings
        self._resolver = resolver
        self._tls = tls
        self._on_attempt = on_attempt
        self._transports: dict[tuple[bool, bool], asyncio.Future[PinnedTransport]] = {}

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request with those that every request has."""
        own = {"User-Agent": self._settings.user_agent, "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
        return own | dict(headers)

    async def exchange(
        self,
        target: Target,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        most_bytes: int,
        is_own: bool,
    ) -> WebResponse:
        """Send one request and read its answer; `is_own` opens this machine and private networks for it."""
        try:
            response = await self._exchange(target, method, headers, body, most_bytes=most_bytes, is_own=is_own)
        except Exception as error:
            fault = error if isinstance(error, WebFault) else self._fault(error, target)
            if fault is None:
                raise
            self._tell(target, str(fault), allowed=fault.kind != "refused")
            raise fault from error
        self._tell(target, f"a web tool asked for it, status {response.status}", allowed=True)
        return response

    async def close(self) -> None:
        """Close all connections; harmless twice."""
        while self._transports:
            _, transport = self._transports.popitem()
            await (await transport).aclose()

    async def _exchange(
        self,
        target: Target,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        most_bytes: int,
        is_own: bool,
    ) -> WebResponse:
        transport = await self._transport(is_https=target.scheme == "https", is_own=is_own)
        clocks = {"timeout": {"connect": self._settings.connect_timeout_s}}
        outgoing = httpx.Request(method, target.url, headers=dict(headers), content=body, extensions=clocks)
        response = await transport.handle_async_request(outgoing)
        try:
            # Nobody reads the words of a redirect; they are taken in so that the connection can be used again.
            is_passed_over = response.status_code in _PASSED_OVER
            encoding = "" if is_passed_over else response.headers.get("content-encoding", "")
            reader = BodyReader(encoding, MOST_PASSED_OVER if is_passed_over else most_bytes)
            count = 0
            async for chunk in response.aiter_raw():
                if not reader.feed(chunk):
                    break
                count += 1
                if not count % _BREATH:
                    # A body in crumbs is handed out without a pause as long as any are left of what the network gave.
                    await asyncio.sleep(0)
            reader.end()
        finally:
            await response.aclose()
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
        network = CheckedNetwork(
            allow_loopback=is_own or self._settings.allow_loopback, allow_private=is_own, resolver=self._resolver
        )
        return PinnedTransport(network, tls)

    def _tell(self, target: Target, reason: str, *, allowed: bool) -> None:
        if self._on_attempt:
            self._on_attempt(Attempt(host=target.host, port=target.port, allowed=allowed, reason=reason))

    def _fault(self, error: Exception, target: Target) -> WebFault | None:
        """Return what went wrong in words, or None for what is no failure of the request."""
        match error:
            case HostUnknown():
                return WebFault("unknown_host", error.reason)
            case AddressRefused():
                return WebFault("refused", error.reason)
            case httpcore.ConnectTimeout() | httpx.ConnectTimeout():
                limit_s = self._settings.connect_timeout_s
                return WebFault("timeout", f"{target.host} did not answer within {limit_s:g} s")
            case httpcore.ConnectError() | httpx.ConnectError():
                return _unconnected(error, target)
            case httpcore.TimeoutException() | httpx.TimeoutException():
                return WebFault("timeout", f"{target.host} took too long")
            case httpcore.NetworkError() | httpcore.ProtocolError() | httpx.TransportError() | httpx.InvalidURL():
                # The library quotes what the server said; that is no place for the words of strangers.
                return WebFault("broken", f"{target.host} broke off, or did not answer in HTTP")
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
