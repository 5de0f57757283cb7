"""How a site is treated: turns, pauses, and what it asks of robots."""

import asyncio

import pytest

from tests.tooling.web.site import ReceivedRequest, Send, Site, http_response, open_client, redirect
from tooling.web.http.messages import WebFault, WebRequest, WebResponse

ROBOTS = "User-agent: *\nDisallow: /private\n\nUser-agent: windlass\nDisallow: /not-for-us\n"


async def test_a_host_is_asked_by_a_few_at_a_time() -> None:
    inside = most = 0

    async def counting(visit: ReceivedRequest, send: Send) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.02)
        inside -= 1
        await send(http_response("x", "Connection: close"))

    async with Site({"*": counting}) as site, open_client(host_connections=3) as client:
        await asyncio.gather(*(client.send(WebRequest(url=site.url(f"/{n}"))) for n in range(12)))
    assert (most, len(site.requests)) == (3, 12)


async def test_waiting_for_a_turn_is_not_the_requests_own_time() -> None:
    async def slow(visit: ReceivedRequest, send: Send) -> None:
        await asyncio.sleep(0.15)
        await send(http_response("x", "Connection: close"))

    async with Site({"*": slow}) as site, open_client(host_connections=1, timeout_s=0.4) as client:
        answers = await asyncio.gather(*(client.send(WebRequest(url=site.url(f"/{n}"))) for n in range(5)))
    assert [answer.status for answer in answers] == [200] * 5


async def test_requests_to_one_host_keep_a_pause_between_them() -> None:
    times: list[float] = []

    async def noting(visit: ReceivedRequest, send: Send) -> None:
        times.append(asyncio.get_running_loop().time())
        await send(http_response("x", "Connection: close"))

    async with Site({"*": noting}) as site, open_client(host_pause_s=0.05) as client:
        await asyncio.gather(*(client.send(WebRequest(url=site.url(f"/{n}"))) for n in range(4)))
    assert times[-1] - times[0] >= 0.09


async def fetch(site: Site, path: str, *, heeds_robots: bool = True) -> WebResponse:
    async with open_client(heeds_robots=heeds_robots) as client:
        return await client.send(WebRequest(url=site.url(path)))


async def test_robots_are_heeded_when_the_user_wants_it() -> None:
    async with Site({"/robots.txt": http_response(ROBOTS, kind="text/plain"), "*": http_response("x")}) as site:
        site.pages["/go"] = redirect("/not-for-us/deep")
        assert (await fetch(site, "/private")).status == 200
        for path in ("/not-for-us/a", "/go"):
            with pytest.raises(WebFault, match="asks robots not to read") as raised:
                await fetch(site, path)
            assert raised.value.kind == "robots"
        assert (await fetch(site, "/not-for-us/a", heeds_robots=False)).status == 200


async def test_a_site_is_asked_for_its_wishes_once_and_silence_is_consent() -> None:
    async with (
        Site({"/robots.txt": http_response("gone", status=404), "*": http_response("x")}) as site,
        open_client(heeds_robots=True) as client,
    ):
        await asyncio.gather(*(client.send(WebRequest(url=site.url(f"/{n}"))) for n in range(4)))
    assert site.paths.count("/robots.txt") == 1
