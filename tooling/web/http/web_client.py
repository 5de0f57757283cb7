"""The one client for all that tools ask of the web: checked addresses on every hop, limits while reading."""

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
from tooling.web.network_attempt import NetworkAttempt
from tooling.web.settings import WebSettings


class RequestDeadline:
    """Counts the seconds of a request and nothing else."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the clock stand still: for a person's answer, or one's turn at a busy host."""
        loop = asyncio.get_running_loop()
        end = self._timeout.when()
        left_s = None if end is None else end - loop.time()
        self._timeout.reschedule(None)
        try:
            yield
        finally:
            if left_s is not None and not self._timeout.expired():
                self._timeout.reschedule(loop.time() + left_s)


@asynccontextmanager
async def request_deadline(limit_s: float) -> AsyncIterator[RequestDeadline]:
    """Open a clock for one request; when it runs out, a WebFault says so."""
    timeout = asyncio.timeout(limit_s)
    try:
        async with timeout:
            yield RequestDeadline(timeout)
    except TimeoutError as error:
        if not timeout.expired():
            raise
        raise WebFault("timeout", f"the answer took longer than {limit_s:g} s") from error


MAX_REDIRECTS = 5
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_METHOD_PRESERVING = frozenset((307, 308))
_NOT_MODIFIED = 304
# What a server may see again after a redirect to another origin; everything else could be a secret.
_CROSS_ORIGIN_HEADERS = frozenset(("accept", "accept-language"))
_ROBOTS_PATH = "/robots.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hop:
    """One of the requests that a request may become on its way."""

    target: Target
    method: str
    headers: Mapping[str, str]
    body: bytes | None

    def redirect(self, target: Target, status: int) -> "_Hop":
        """Return the hop that a redirect asks for; secrets do not come along to another origin."""
        hop = replace(self, target=target)
        if status not in _METHOD_PRESERVING and self.method != "GET":
            hop = replace(hop, method="GET", body=None)
        if target.origin != self.target.origin:
            kept = {name: value for name, value in self.headers.items() if name.lower() in _CROSS_ORIGIN_HEADERS}
            hop = replace(hop, headers=kept)
        return hop


class WebClient:
    """Sends requests and follows where they lead; connections last as long as the run, cookies do not last at all."""

    def __init__(
        self,
        settings: WebSettings,
        *,
        resolver: Resolver | None = None,
        tls: Callable[[], ssl.SSLContext] = httpx.create_ssl_context,
        on_attempt: Callable[[NetworkAttempt], None] | None = None,
    ) -> None:
        self._settings = settings
        self._http = RawHttpClient(settings, resolver=resolver, tls=tls, on_attempt=on_attempt)
        folder = settings.cache_dir
        self._cache = DiskCache(folder, most_bytes=settings.cache_bytes) if folder and settings.cache_bytes else None
        self._throttle = HostThrottle(at_once=settings.host_connections, pause_s=settings.host_pause_s)
        self._robots = Robots(self.send) if settings.heeds_robots else None

    async def send(self, request: WebRequest) -> WebResponse:
        """Send a request, follow its redirects, read the answer up to its limit; raise WebFault when that fails."""
        async with request_deadline(request.timeout_s or self._settings.timeout_s) as clock:
            return await self._follow_redirects(request, clock)

    async def close(self) -> None:
        """Close all connections; harmless twice."""
        await self._http.close()

    async def _follow_redirects(self, request: WebRequest, clock: RequestDeadline) -> WebResponse:
        target = self._parse_target(request.url, request)
        hop = _Hop(target=target, method=request.method, headers=request.headers, body=request.body)
        seen = {(hop.method, hop.target.url)}
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._send_cached(hop, request, clock)
            location = response.headers.get("location", "")
            if response.status not in _REDIRECTS or not location:
                return response
            hop = hop.redirect(await self._redirect_target(hop.target, location, request, clock), response.status)
            if (hop.method, hop.target.url) in seen:
                raise WebFault("redirects", f"the redirects go in a circle, back to {hop.target.url}")
            seen.add((hop.method, hop.target.url))
        raise WebFault("redirects", f"there are more than {MAX_REDIRECTS} redirects")

    async def _redirect_target(
        self, target: Target, location: str, request: WebRequest, clock: RequestDeadline
    ) -> Target:
        # Servers forget to encode blanks; a browser does it for them.
        try:
            place = urljoin(target.url, location.strip().replace(" ", "%20"))
        except ValueError as error:
            raise WebFault("refused", f"{target.host} redirects to what is no address") from error
        following = self._parse_target(place, request, f"{target.host} redirects: ")
        if target.scheme == "https" and following.scheme == "http":
            raise WebFault("redirects", f"{target.host} redirects from https to http, {following.url}")
        if request.is_trusted and following.origin != target.origin:
            raise WebFault("redirects", f"{target.host} redirects to another place, {following.host}")
        if request.gate and following.host != target.host:
            with clock.paused():
                why_not = await request.gate(following)
            if why_not:
                raise WebFault("denied", why_not)
        return following

    def _parse_target(self, url: str, request: WebRequest, place: str = "") -> Target:
        try:
            is_own = _is_local_endpoint(request)
            return parse_url(url, allow_loopback=self._settings.allow_loopback or is_own, allow_private=is_own)
        except AddressRefused as error:
            raise WebFault("refused", f"{place}{error.reason}") from error

    async def _send_cached(self, hop: _Hop, request: WebRequest, clock: RequestDeadline) -> WebResponse:
        """Answer one hop: from the cache where it holds, else from its server."""
        cache = None if hop.method != "GET" or request.is_trusted else self._cache
        headers = self._http.with_default_headers(hop.headers)
        entry = await cache.get(hop.target.url, headers) if cache and request.use_cache else None
        if cache and entry and cache.is_fresh(entry):
            return entry.response
        if self._robots and not request.is_trusted and hop.target.path != _ROBOTS_PATH:
            with clock.paused():
                await self._robots.check(hop.target)
        response = await self._send_uncached(hop, request, clock, entry)
        if cache and entry and response.status == _NOT_MODIFIED:
            await cache.refresh(entry, response.headers)
            return entry.response
        if cache and response.status == 200:
            await cache.put(response, headers)
        return response

    async def _send_uncached(
        self, hop: _Hop, request: WebRequest, clock: RequestDeadline, entry: CacheEntry | None
    ) -> WebResponse:
        headers = self._http.with_default_headers(
            {**hop.headers, **(entry.metadata.conditional_headers if entry else {})}
        )
        async with AsyncExitStack() as stack:
            with clock.paused():
                await stack.enter_async_context(self._throttle.slot(hop.target.host))
            return await self._http.send(
                hop.target,
                hop.method,
                headers,
                hop.body,
                most_bytes=request.max_bytes or self._settings.max_bytes,
                is_own=_is_local_endpoint(request),
            )


def _is_local_endpoint(request: WebRequest) -> bool:
    """Say whether the user configured an endpoint on a machine of theirs: writing its address is the permission."""
    return request.is_trusted and is_local_url(request.url)
