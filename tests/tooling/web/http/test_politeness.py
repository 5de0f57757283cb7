"""Politeness towards sites: concurrency, pauses and robots.txt."""

import asyncio

import pytest

from tests.tooling.web.site import Send, Site, SiteRequest, http_response, open_client, redirect
from tooling.web.http.messages import WebFault, WebRequest, WebResponse
from tooling.web.http.politeness import disallowed

ROBOTS = "User-agent: *\nDisallow: /private\n\nUser-agent: windlass\nDisallow: /not-for-us\n"


async def test_requests_to_a_host_are_limited() -> None:
    active = peak = 0

    async def count_active(request: SiteRequest, send: Send) -> None:
        nonlocal active, peak
        active += 1
        peak = max(peak, active)
        await asyncio.sleep(0.02)
        active -= 1
        await send(http_response("x", "Connection: close"))

    async with Site({"*": count_active}) as site, open_client(host_connections=3) as client:
        await asyncio.gather(*(client.send(WebRequest(url=site.url(f"/{n}"))) for n in range(12)))
    assert (peak, len(site.requests)) == (3, 12)


async def test_waiting_for_a_slot_does_not_count_towards_the_timeout() -> None:
    async def slow(request: SiteRequest, send: Send) -> None:
        await asyncio.sleep(0.15)
        await send(http_response("x", "Connection: close"))

    async with Site({"*": slow}) as site, open_client(host_connections=1, timeout_s=0.4) as client:
        responses = await asyncio.gather(*(client.send(WebRequest(url=site.url(f"/{n}"))) for n in range(5)))
    assert [response.status for response in responses] == [200] * 5


async def test_requests_to_one_host_are_spaced_by_the_pause() -> None:
    times: list[float] = []

    async def record_time(request: SiteRequest, send: Send) -> None:
        times.append(asyncio.get_running_loop().time())
        await send(http_response("x", "Connection: close"))

    async with Site({"*": record_time}) as site, open_client(host_pause_s=0.05) as client:
        await asyncio.gather(*(client.send(WebRequest(url=site.url(f"/{n}"))) for n in range(4)))
    assert times[-1] - times[0] >= 0.09


async def fetch(site: Site, path: str, *, respects_robots: bool = True) -> WebResponse:
    async with open_client(respects_robots=respects_robots) as client:
        return await client.send(WebRequest(url=site.url(path)))


async def test_robots_txt_is_respected_when_enabled() -> None:
    async with Site({"/robots.txt": http_response(ROBOTS, kind="text/plain"), "*": http_response("x")}) as site:
        site.pages["/go"] = redirect("/not-for-us/deep")
        assert (await fetch(site, "/private")).status == 200
        for path in ("/not-for-us/a", "/go"):
            with pytest.raises(WebFault, match=disallowed("127.0.0.1")) as raised:
                await fetch(site, path)
            assert raised.value.kind == "robots"
        assert (await fetch(site, "/not-for-us/a", respects_robots=False)).status == 200


async def test_robots_txt_is_fetched_once_and_its_absence_allows_everything() -> None:
    async with (
        Site({"/robots.txt": http_response("gone", status=404), "*": http_response("x")}) as site,
        open_client(respects_robots=True) as client,
    ):
        await asyncio.gather(*(client.send(WebRequest(url=site.url(f"/{n}"))) for n in range(4)))
    assert site.paths.count("/robots.txt") == 1
