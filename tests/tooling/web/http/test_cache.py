"""The HTTP cache: freshness, revalidation, private files and bounded size."""

import stat
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.tooling.web.site import Send, Site, SiteRequest, http_response, open_client, redirect
from tooling.web.http.messages import WebRequest, WebResponse
from tooling.web.http.page_cache import MAX_HEURISTIC_S, DiskCache, fresh_until, metadata_for

NOW = 1_800_000_000.0
HOUR_AGO = formatdate(NOW - 3600, usegmt=True)
THEN = formatdate(NOW, usegmt=True)
LATER = formatdate(NOW + 100, usegmt=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"cache-control": "max-age=60"}, 60),
        ({"cache-control": "public, max-age=60, must-revalidate"}, 60),
        ({"cache-control": 'private="x", max-age="60"'}, 60),
        ({"cache-control": "max-age=60", "age": "20"}, 40),
        ({"cache-control": "max-age=60", "expires": THEN}, 60),
        ({"cache-control": "max-age=99999999999999"}, 30 * 86_400),
        ({"expires": LATER, "date": THEN}, 100),
        ({"expires": LATER, "date": THEN, "age": "30"}, 70),
        ({"last-modified": HOUR_AGO, "date": THEN}, 360),
        ({"last-modified": formatdate(0, usegmt=True), "date": THEN}, MAX_HEURISTIC_S),
    ],
)
def test_responses_are_fresh_as_long_as_their_headers_say(headers: dict[str, str], seconds: float) -> None:
    assert fresh_until(headers, NOW) == pytest.approx(NOW + seconds, abs=1)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"cache-control": "no-cache"},
        {"cache-control": "no-cache, max-age=60"},
        {"cache-control": "max-age=0"},
        {"cache-control": "max-age=nonsense"},
        {"cache-control": "max-age=-5"},
        {"expires": "0"},
        {"expires": HOUR_AGO, "date": THEN},
        {"pragma": "no-cache", "last-modified": HOUR_AGO},
        {"last-modified": "nonsense"},
    ],
)
def test_responses_without_freshness_are_stale(headers: dict[str, str]) -> None:
    assert fresh_until(headers, NOW) <= NOW


@pytest.mark.parametrize(
    ("status", "headers", "is_cached"),
    [
        (200, {"cache-control": "max-age=60"}, True),
        (200, {"etag": '"1"'}, True),
        (200, {"cache-control": "no-cache", "etag": '"1"'}, True),
        (200, {"cache-control": "no-store", "etag": '"1"'}, False),
        (200, {"cache-control": "max-age=60", "vary": "*"}, False),
        (200, {"cache-control": "max-age=60", "vary": "Accept, Cookie"}, True),
        (200, {}, False),
        (404, {"cache-control": "max-age=60"}, False),
        (206, {"cache-control": "max-age=60"}, False),
    ],
)
def test_only_reusable_responses_are_cached(status: int, headers: dict[str, str], is_cached: bool) -> None:
    response = WebResponse(url="https://example.org/", status=status, headers=headers)
    assert (metadata_for(response, {}, NOW) is not None) is is_cached


async def test_a_fresh_response_needs_no_request_and_a_stale_one_is_revalidated(tmp_path: Path) -> None:
    tags: list[str] = []

    async def changing(request: SiteRequest, send: Send) -> None:
        tags.append(request.headers.get("if-none-match", ""))
        known = request.headers.get("if-none-match") == '"1"'
        await send(
            http_response("" if known else "first", 'ETag: "1"', "Connection: close", status=304 if known else 200)
        )

    pages = {"/fresh": http_response("kept", "Cache-Control: max-age=60"), "/tag": changing, "/no": http_response("x")}
    async with Site(pages) as site:
        async with open_client(cache_dir=tmp_path / "cache") as client:
            responses = [await client.send(WebRequest(url=site.url("/fresh"))) for _ in range(3)]
            assert [(response.text, response.is_from_cache) for response in responses] == [
                ("kept", False),
                ("kept", True),
                ("kept", True),
            ]
        # The cache outlives the client.
        async with open_client(cache_dir=tmp_path / "cache") as client:
            assert (await client.send(WebRequest(url=site.url("/fresh")))).is_from_cache
            for _ in range(3):
                assert (await client.send(WebRequest(url=site.url("/tag")))).text == "first"
                assert not (await client.send(WebRequest(url=site.url("/no")))).is_from_cache
            assert not (await client.send(WebRequest(url=site.url("/fresh"), use_cache=False))).is_from_cache
            assert not (await client.send(WebRequest(url=site.url("/fresh"), is_trusted=True))).is_from_cache
    assert tags == ["", '"1"', '"1"']
    assert site.paths.count("/fresh") == 3


async def test_vary_is_respected_and_posts_are_not_cached(tmp_path: Path) -> None:
    site_pages = {"/": http_response("x", "Cache-Control: max-age=60", "Vary: Accept-Language")}
    async with Site(site_pages) as site, open_client(cache_dir=tmp_path) as client:
        for language in ("de", "de", "en", "de"):
            await client.send(WebRequest(url=site.url(), headers={"Accept-Language": language}))
        await client.send(WebRequest(url=site.url(), method="POST", body=b"q"))
    assert [request.headers.get("accept-language") for request in site.requests] == ["de", "en", "de", None]


async def test_every_hop_is_gated_even_if_its_target_is_cached(tmp_path: Path) -> None:
    gated: list[str] = []

    async def gate(target: object) -> str | None:
        gated.append("x")
        return "not there"

    async with (
        Site({"/": http_response("x", "Cache-Control: max-age=60")}) as site,
        open_client(cache_dir=tmp_path) as client,
    ):
        await client.send(WebRequest(url=site.url(host="localhost")))
        site.pages["/go"] = redirect(site.url(host="localhost"))
        with pytest.raises(Exception, match="not there"):
            await client.send(WebRequest(url=site.url("/go"), gate=gate))
    assert gated == ["x"]


async def test_cache_files_are_private_bounded_and_may_be_corrupt(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    cache = DiskCache(folder, max_bytes=100_000)
    headers = {"cache-control": "max-age=60"}
    for n in range(30):
        url = f"https://example.org/{n}"
        await cache.put(WebResponse(url=url, status=200, headers=headers, body=b"x" * 10_000), {})
    files = list(folder.iterdir())
    assert sum(file.stat().st_size for file in files) <= 100_000
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert await cache.get("https://example.org/29", {}) is not None
    assert await cache.get("https://example.org/0", {}) is None
    for junk in (b"", b"{}\n", b"[1]\nx", b'{"size": 1}\nx', b"\xff\xff"):
        for file in folder.iterdir():
            file.write_bytes(junk)
        assert await cache.get("https://example.org/29", {}) is None


async def test_a_page_that_is_no_longer_cacheable_is_removed(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, max_bytes=100_000)
    url = "https://example.org/"
    await cache.put(WebResponse(url=url, status=200, headers={"cache-control": "max-age=60"}), {})
    await cache.put(WebResponse(url=url, status=200, headers={"cache-control": "no-store"}), {})
    assert await cache.get(url, {}) is None


async def test_an_unwritable_cache_does_not_fail_requests(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    async with (
        Site({"/": http_response("x", "Cache-Control: max-age=60")}) as site,
        open_client(cache_dir=tmp_path / "file") as client,
    ):
        for _ in range(2):
            assert (await client.send(WebRequest(url=site.url()))).text == "x"
