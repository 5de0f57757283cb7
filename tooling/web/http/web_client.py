"""The HTTP client of all web tools: redirects checked hop by hop, cache, throttling, deadlines."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from urllib.parse import urljoin

from tooling.contract.fast_dataclass import dataclass
from tooling.web.addresses.url_check import AddressRefused, Resolver, Target, is_local_url, parse_url
from tooling.web.http.httpx_import import httpx
from tooling.web.http.messages import WebFault, WebRequest, WebResponse
from tooling.web.http.page_cache import CacheEntry, DiskCache
from tooling.web.http.politeness import HostThrottle, Robots
from tooling.web.http.transport import RawHttpClient
from tooling.web.network_attempt import OnAttempt
from tooling.web.settings import WebSettings


class RequestDeadline:
    """The deadline of a request; it can be paused."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock, for a user's approval or a free slot at a busy host."""
        loop = asyncio.get_running_loop()
        end = self._timeout.when()
        remaining_s = None if end is None else end - loop.time()
        self._timeout.reschedule(None)
        try:
            yield
        finally:
            if remaining_s is not None and not self._timeout.expired():
                self._timeout.reschedule(loop.time() + remaining_s)


@asynccontextmanager
async def request_deadline(timeout_s: float) -> AsyncIterator[RequestDeadline]:
    """Open a deadline for one request; raise WebFault when it expires."""
    timeout = asyncio.timeout(timeout_s)
    try:
        async with timeout:
            yield RequestDeadline(timeout)
    except TimeoutError as error:
        if not timeout.expired():
            raise
        raise WebFault("timeout", timed_out(timeout_s)) from error


def timed_out(timeout_s: float) -> str:
    """Return the message for a request beyond its deadline."""
    return f"the response took longer than {timeout_s:g} s"


MAX_REDIRECTS = 5
TOO_MANY_REDIRECTS = f"there are more than {MAX_REDIRECTS} redirects"
REDIRECT_LOOP = "the redirects form a loop"
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_METHOD_PRESERVING = frozenset((307, 308))
_NOT_MODIFIED = 304
# The only headers sent on to another origin; any other could be a secret.
_CROSS_ORIGIN_HEADERS = frozenset(("accept", "accept-language"))
_ROBOTS_PATH = "/robots.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hop:
    """One request in a chain of redirects."""

    target: Target
    method: str
    headers: Mapping[str, str]
    body: bytes | None

    def redirect(self, target: Target, status: int) -> "_Hop":
        """Return the next hop of a redirect; secret headers are dropped for another origin."""
        hop = replace(self, target=target)
        if status not in _METHOD_PRESERVING and self.method != "GET":
            hop = replace(hop, method="GET", body=None)
        if target.origin != self.target.origin:
            safe = {name: value for name, value in self.headers.items() if name.lower() in _CROSS_ORIGIN_HEADERS}
            hop = replace(hop, headers=safe)
        return hop


class WebClient:
    """Sends requests and follows redirects; connections are pooled for the run, cookies are never stored."""

    def __init__(
        self,
        settings: WebSettings,
        *,
        resolver: Resolver | None = None,
        tls: Callable[[], ssl.SSLContext] = httpx.create_ssl_context,
        on_attempt: OnAttempt | None = None,
    ) -> None:
        self._settings = settings
        self._http = RawHttpClient(settings, resolver=resolver, tls=tls, on_attempt=on_attempt)
        folder = settings.cache_dir
        self._cache = DiskCache(folder, max_bytes=settings.cache_bytes) if folder and settings.cache_bytes else None
        self._throttle = HostThrottle(max_concurrent=settings.host_connections, pause_s=settings.host_pause_s)
        self._robots = Robots(self.send) if settings.respects_robots else None

    async def send(self, request: WebRequest) -> WebResponse:
        """Send a request, follow redirects and read the response up to its limit; raise WebFault on failure."""
        async with request_deadline(request.timeout_s or self._settings.timeout_s) as deadline:
            return await self._follow_redirects(request, deadline)

    async def close(self) -> None:
        """Close all connections; may be called twice."""
        await self._http.close()

    async def _follow_redirects(self, request: WebRequest, deadline: RequestDeadline) -> WebResponse:
        target = self._parse_target(request.url, request)
        hop = _Hop(target=target, method=request.method, headers=request.headers, body=request.body)
        seen = {(hop.method, hop.target.url)}
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._send_cached(hop, request, deadline)
            location = response.headers.get("location", "")
            if response.status not in _REDIRECTS or not location:
                return response
            hop = hop.redirect(await self._redirect_target(hop.target, location, request, deadline), response.status)
            if (hop.method, hop.target.url) in seen:
                raise WebFault("redirects", f"{REDIRECT_LOOP} back to {hop.target.url}")
            seen.add((hop.method, hop.target.url))
        raise WebFault("redirects", TOO_MANY_REDIRECTS)

    async def _redirect_target(
        self, target: Target, location: str, request: WebRequest, deadline: RequestDeadline
    ) -> Target:
        # Servers forget to encode spaces; browsers do it for them.
        try:
            url = urljoin(target.url, location.strip().replace(" ", "%20"))
        except ValueError as error:
            raise WebFault("refused", f"{target.host} redirects to an invalid address") from error
        new_target = self._parse_target(url, request, f"{target.host} redirects: ")
        if target.scheme == "https" and new_target.scheme == "http":
            raise WebFault("redirects", f"{target.host} redirects from https to http, {new_target.url}")
        if request.is_trusted and new_target.origin != target.origin:
            raise WebFault("redirects", f"{target.host} redirects to another origin, {new_target.host}")
        if request.gate and new_target.host != target.host:
            with deadline.paused():
                refusal = await request.gate(new_target)
            if refusal:
                raise WebFault("denied", refusal)
        return new_target

    def _parse_target(self, url: str, request: WebRequest, prefix: str = "") -> Target:
        try:
            allow_local = _is_local_endpoint(request)
            return parse_url(
                url, allow_loopback=self._settings.allow_loopback or allow_local, allow_private=allow_local
            )
        except AddressRefused as error:
            raise WebFault("refused", f"{prefix}{error.reason}") from error

    async def _send_cached(self, hop: _Hop, request: WebRequest, deadline: RequestDeadline) -> WebResponse:
        """Return the response for one hop, from the cache if it is fresh, else from the server."""
        cache = None if hop.method != "GET" or request.is_trusted else self._cache
        headers = self._http.with_default_headers(hop.headers)
        entry = await cache.get(hop.target.url, headers) if cache and request.use_cache else None
        if cache and entry and cache.is_fresh(entry):
            return entry.response
        if self._robots and not request.is_trusted and hop.target.path != _ROBOTS_PATH:
            with deadline.paused():
                await self._robots.check(hop.target)
        response = await self._send_uncached(hop, request, deadline, entry)
        if cache and entry and response.status == _NOT_MODIFIED:
            await cache.refresh(entry, response.headers)
            return entry.response
        if cache and response.status == 200:
            await cache.put(response, headers)
        return response

    async def _send_uncached(
        self, hop: _Hop, request: WebRequest, deadline: RequestDeadline, entry: CacheEntry | None
    ) -> WebResponse:
        headers = self._http.with_default_headers(
            {**hop.headers, **(entry.metadata.conditional_headers if entry else {})}
        )
        if hop.method != "GET":
            # The same for every attempt, so that a server can detect repetitions.
            headers = {"Idempotency-Key": request.idempotency_key, **headers}
        async with AsyncExitStack() as stack:
            with deadline.paused():
                await stack.enter_async_context(self._throttle.slot(hop.target.host))
            return await self._http.send(
                hop.target,
                hop.method,
                headers,
                hop.body,
                max_bytes=request.max_bytes or self._settings.max_bytes,
                allow_local=_is_local_endpoint(request),
            )


def _is_local_endpoint(request: WebRequest) -> bool:
    """Return whether the user configured a local endpoint: configuring its address permits access."""
    return request.is_trusted and is_local_url(request.url)
