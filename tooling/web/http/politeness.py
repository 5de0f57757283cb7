"""Politeness towards sites: limited concurrency, a pause between requests, and robots.txt if the user wants it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias
from urllib.robotparser import RobotFileParser

from tooling.web.addresses.url_check import Target
from tooling.web.http.messages import WebFault, WebRequest, WebResponse

ROBOTS_AGENT = "windlass"
MAX_ROBOTS_BYTES = 500_000
ROBOTS_TIMEOUT_S = 10.0

Send: TypeAlias = Callable[[WebRequest], Awaitable[WebResponse]]


class HostThrottle:
    """Limits concurrency and rate of the requests to each host."""

    def __init__(self, *, max_concurrent: int, pause_s: float) -> None:
        self._max_concurrent = max_concurrent
        self._pause_s = pause_s
        self._semaphores: dict[str, asyncio.Semaphore] = {}
        self._next_start: dict[str, float] = {}

    @asynccontextmanager
    async def slot(self, host: str) -> AsyncIterator[None]:
        """Wait for a free slot at the host and hold it."""
        async with self._semaphores.setdefault(host, asyncio.Semaphore(self._max_concurrent)):
            await self._pause(host)
            yield

    async def _pause(self, host: str) -> None:
        if self._pause_s <= 0:
            return
        now = asyncio.get_running_loop().time()
        start = max(self._next_start.get(host, 0.0), now)
        self._next_start[host] = start + self._pause_s
        await asyncio.sleep(start - now)


class Robots:
    """The robots.txt rules of sites, fetched once per site and run; a site without rules allows everything."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._sites: dict[str, asyncio.Future[RobotFileParser]] = {}

    async def check(self, target: Target) -> None:
        """Raise WebFault if robots.txt disallows the page."""
        site = f"{target.scheme}://{target.authority}"
        if site not in self._sites:
            self._sites[site] = asyncio.ensure_future(self._fetch_rules(site))
        rules = await asyncio.shield(self._sites[site])
        if not rules.can_fetch(ROBOTS_AGENT, target.url):
            raise WebFault("robots", disallowed(target.host))

    async def _fetch_rules(self, site: str) -> RobotFileParser:
        rules = RobotFileParser()
        request = WebRequest(
            url=f"{site}/robots.txt", timeout_s=ROBOTS_TIMEOUT_S, max_bytes=MAX_ROBOTS_BYTES, gate=_refuse_redirect
        )
        try:
            response = await self._send(request)
        except WebFault:
            rules.parse([])
            return rules
        rules.parse(response.text.splitlines() if response.is_ok else [])
        return rules


def disallowed(host: str) -> str:
    """Return the message for a page that robots.txt disallows."""
    return f"the robots.txt of {host} disallows this page, and web_robots is on"


async def _refuse_redirect(target: Target) -> str | None:
    """Refuse a redirect of robots.txt to another host, which has not been approved."""
    return f"robots.txt redirects to {target.host}"
