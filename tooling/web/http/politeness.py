"""How a site is treated: a few requests at the same time, a pause between them, and its wishes if the user says so."""

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
    """Keeps the requests of a run to one host apart and few."""

    def __init__(self, *, at_once: int, pause_s: float) -> None:
        self._max_concurrent = at_once
        self._pause_s = pause_s
        self._semaphores: dict[str, asyncio.Semaphore] = {}
        self._next_start: dict[str, float] = {}

    @asynccontextmanager
    async def slot(self, host: str) -> AsyncIterator[None]:
        """Wait until the host may be asked, and hold a place at its door."""
        async with self._semaphores.setdefault(host, asyncio.Semaphore(self._max_concurrent)):
            await self._pause(host)
            yield

    async def _pause(self, host: str) -> None:
        if self._pause_s <= 0:
            return
        now = asyncio.get_running_loop().time()
        mine = max(self._next_start.get(host, 0.0), now)
        self._next_start[host] = mine + self._pause_s
        await asyncio.sleep(mine - now)


class Robots:
    """What sites ask of robots, read once for each in a run; a site that says nothing allows everything."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._sites: dict[str, asyncio.Future[RobotFileParser]] = {}

    async def check(self, target: Target) -> None:
        """Return when a page may be asked for, or raise WebFault."""
        site = f"{target.scheme}://{target.authority}"
        if site not in self._sites:
            self._sites[site] = asyncio.ensure_future(self._fetch_rules(site))
        rules = await asyncio.shield(self._sites[site])
        if not rules.can_fetch(ROBOTS_AGENT, target.url):
            raise WebFault("robots", f"{target.host} asks robots not to read this page, and web_robots heeds that")

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


async def _refuse_redirect(target: Target) -> str | None:
    """Follow no site to another host for its rules: nobody was asked for that one."""
    return f"the rules of a site are not at {target.host}"
