"""Servers that violate HTTP, and corrupt cache files: each is one fault and never hangs."""

import asyncio
import gzip
import json
import os
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.tooling.web.site import (
    Send,
    Site,
    SiteRequest,
    SiteResponse,
    http_response,
    open_client,
    redirect,
    response_head,
)
from tooling.web.http.messages import WebFault, WebRequest
from tooling.web.search.types import build_hit


async def many_headers(request: SiteRequest, send: Send) -> None:
    await send(b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(20_000)) + b"\r\nhello")


async def endless_header(request: SiteRequest, send: Send) -> None:
    await send(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        await send(b"a" * 10_000)


async def endless_trailers(request: SiteRequest, send: Send) -> None:
    await send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n")
    while True:
        await send(b"X: y\r\n" * 1000)


async def endless_hints(request: SiteRequest, send: Send) -> None:
    while True:
        await send(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")


async def trickle(request: SiteRequest, send: Send) -> None:
    await send(response_head("Content-Type: text/plain"))
    while True:
        await send(b"a")
        await asyncio.sleep(0.02)


def raw(data: bytes) -> SiteResponse:
    """Send raw bytes and close the connection."""

    async def respond(request: SiteRequest, send: Send) -> None:
        await send(data)

    return respond


COMPRESSED_TWICE = http_response(gzip.compress(gzip.compress(b"x")), "Content-Encoding: gzip, gzip")
BROKEN: dict[str, tuple[SiteResponse, str]] = {
    "many headers": (many_headers, "broken"),
    "one header of a megabyte": (raw(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\nx"), "broken"),
    "an endless header": (endless_header, "broken"),
    "endless trailers": (endless_trailers, "broken"),
    "endless early hints": (endless_hints, "timeout"),
    "a trickle": (trickle, "timeout"),
    "not HTTP": (raw(b"<html>hello"), "broken"),
    "another protocol": (raw(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello"), "broken"),
    "an invalid status": (raw(b"HTTP/1.1 abc OK\r\n\r\n"), "broken"),
    "a chunk of garbage": (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello"), "broken"),
    "less than Content-Length": (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\nhello"), "broken"),
    "two lengths": (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nhello"), "broken"),
    "a negative length": (raw(b"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nhello"), "broken"),
    "a NUL in a header": (raw(b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\nhello"), "broken"),
    "compressed twice": (COMPRESSED_TWICE, "encoding"),
    "compressed as br": (http_response(b"x", "Content-Encoding: br"), "encoding"),
    "compressed as zstd": (http_response(b"x", "Content-Encoding: zstd"), "encoding"),
    "incomplete gzip": (http_response(gzip.compress(b"hello" * 100)[:-9], "Content-Encoding: gzip"), "broken"),
    "not compressed at all": (http_response(b"hello", "Content-Encoding: gzip"), "encoding"),
    "redirect to a private address": (redirect("http://10.0.0.1/"), "refused"),
    "redirect to metadata": (redirect("//169.254.169.254/latest/"), "refused"),
    "redirect to a number": (redirect("http://2852039166/"), "refused"),
    "redirect with credentials": (redirect("http://user:pass@127.0.0.1/"), "refused"),
    "redirect to a file": (redirect("file:///etc/passwd"), "refused"),
    "redirect to gopher": (redirect("gopher://127.0.0.1:6379/_x"), "refused"),
    "redirect to data": (redirect("data:text/html,hello"), "refused"),
    "redirect with backslashes": (redirect("\\\\10.0.0.1\\x"), "refused"),
    "redirect with slash and backslash": (redirect("/\\10.0.0.1/x"), "refused"),
    "redirect with a tab in the host": (redirect("http://10.0.\t0.1/"), "refused"),
    "redirect to port 0": (redirect("http://127.0.0.1:0/"), "refused"),
    "redirect to another service": (redirect("http://127.0.0.1:25/"), "refused"),
    "redirect to itself": (redirect("?"), "redirects"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_lying_server_is_one_fault(name: str) -> None:
    response, kind = BROKEN[name]
    async with Site({"*": response}) as site, open_client(timeout_s=0.5) as client:
        with pytest.raises(WebFault) as raised:
            await client.send(WebRequest(url=site.url("/")))
    assert raised.value.kind == kind, str(raised.value)
    assert len(str(raised.value)) < 300


async def test_only_http_redirects_are_followed() -> None:
    body = "<meta http-equiv=refresh content='0; url=/elsewhere'><script>location='/elsewhere'</script>"
    async with Site(
        {"/": http_response(body, "Refresh: 0; url=/elsewhere", "Link: </elsewhere>; rel=preload")}
    ) as site:
        async with open_client() as client:
            assert (await client.send(WebRequest(url=site.url("/")))).status == 200
        assert site.paths == ["/"]


async def test_a_body_in_tiny_chunks_does_not_block_the_loop() -> None:
    async def tiny_chunks(request: SiteRequest, send: Send) -> None:
        await send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 9_000 + b"0\r\n\r\n")

    ticks = 0

    async def count_ticks() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    async with Site({"/": tiny_chunks}) as site, open_client() as client:
        ticker = asyncio.ensure_future(count_ticks())
        response = await client.send(WebRequest(url=site.url("/")))
        ticker.cancel()
    assert response.body == b"a" * 9_000
    # With one iteration of the loop per network buffer there would be a few dozen.
    assert ticks > 100


async def test_many_members_and_trailing_bytes_are_harmless() -> None:
    pages = {
        "/members": http_response(gzip.compress(b"") * 20_000 + gzip.compress(b"hello"), "Content-Encoding: gzip"),
        "/rest": http_response(gzip.compress(b"hello") + b"rest", "Content-Encoding: gzip"),
        "/bare": http_response(zlib.compress(b"hello")[2:-4], "Content-Encoding: deflate"),
    }
    async with Site(dict(pages)) as site, open_client() as client:
        for path in pages:
            assert (await client.send(WebRequest(url=site.url(path)))).body == b"hello"


@pytest.mark.parametrize("headers", [('ETag: "caf\xe9"',), ("Last-Modified: caf\xe9",), ("ETag: " + "x" * 60_000,)])
async def test_an_unsafe_validator_is_not_sent_back(tmp_path: Path, headers: tuple[str, ...]) -> None:
    async with (
        Site({"/": http_response("a", *headers, "Cache-Control: no-cache")}) as site,
        open_client(cache_dir=tmp_path) as client,
    ):
        for _ in range(2):
            assert (await client.send(WebRequest(url=site.url("/")))).body == b"a"
        assert not [name for name in site.requests[-1].headers if name.startswith("if-")]


def cached_files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


@pytest.fixture
async def cached_page(tmp_path: Path) -> AsyncIterator[tuple[Site, Path]]:
    """A site with one cached page, and the cache file."""
    async with Site({"/": http_response("a", "Cache-Control: max-age=100")}) as site:
        async with open_client(cache_dir=tmp_path) as client:
            await client.send(WebRequest(url=site.url("/")))
        (file,) = cached_files(tmp_path)
        yield site, file


def cache_file(**fields: object) -> bytes:
    head = {"url": "http://x/", "headers": {}, "asked_with": {}, "fresh_until": 9e12, "size": 1} | fields
    return json.dumps(head).encode() + b"\nz"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]\nz",
        b"null\nz",
        b"[" * 100_000 + b"\nz",
        b"\xff\xfe\x00",
        cache_file(size="1"),
        cache_file(headers={"etag": 1}),
        cache_file(url="http://127.0.0.1/"),
        cache_file(extra=1),
        b"pipe",
        b"link",
    ],
    ids=lambda data: repr(data[:12]),
)
async def test_a_corrupt_cache_entry_is_fetched_again(cached_page: tuple[Site, Path], data: bytes) -> None:
    site, file = cached_page
    file.unlink()
    if data == b"pipe":
        os.mkfifo(file)
    elif data == b"link":
        file.symlink_to("/etc/passwd")
    else:
        file.write_bytes(data)
    async with open_client(cache_dir=file.parent) as client:
        response = await client.send(WebRequest(url=site.url("/")))
    assert (response.body, response.is_from_cache, len(site.requests)) == (b"a", False, 2)
    assert file.is_file()
    assert not file.is_symlink()


async def test_pages_are_fetched_without_a_cache_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    pages: dict[str, SiteResponse] = {
        "/a": http_response("a", "Cache-Control: no-store"),
        "/b": http_response("b", "Cache-Control: max-age=9"),
    }
    async with Site(pages) as site, open_client(cache_dir=tmp_path / "file") as client:
        for path in pages:
            assert (await client.send(WebRequest(url=site.url(path)))).status == 200


async def test_robots_txt_is_not_followed_to_another_host() -> None:
    async with Site({"/": http_response("x")}) as site, open_client(respects_robots=True) as client:
        site.pages["/robots.txt"] = redirect(f"http://localhost:{site.port}/spy")
        assert (await client.send(WebRequest(url=site.url("/")))).status == 200
        assert site.paths == ["/robots.txt", "/"]


def test_a_result_with_an_oversized_url_is_dropped() -> None:
    assert build_hit(title="T", url=f"https://example.org/{'a' * 3_000}", snippet="") is None
