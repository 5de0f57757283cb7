"""The web client: addresses, headers, redirects, limits and faults."""

import asyncio
import gzip
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.agent.backends.egress.proxy_harness import certificate, free_port
from tests.tooling.web.http2_site import Http2Site
from tests.tooling.web.site import (
    Send,
    Site,
    SiteRequest,
    SiteResponse,
    fake_resolver,
    http_response,
    open_client,
    redirect,
    response_head,
)
from tooling.web.addresses.url_check import NOT_PUBLIC
from tooling.web.http.messages import FaultKind, WebFault, WebRequest, WebResponse, not_json
from tooling.web.http.transport import no_connection
from tooling.web.http.web_client import REDIRECT_LOOP, TOO_MANY_REDIRECTS, WebClient, timed_out


async def get(client: WebClient, url: str, **options: object) -> WebResponse:
    return await client.send(WebRequest(url=url, **options))  # type: ignore[arg-type]


async def fault(client: WebClient, url: str, **options: object) -> tuple[FaultKind, str]:
    with pytest.raises(WebFault) as raised:
        await get(client, url, **options)
    return raised.value.kind, str(raised.value)


async def test_a_response_has_status_headers_and_body() -> None:
    async with Site({"/a?b=1": http_response("hello", "X-Kind: x")}) as site, open_client() as client:
        response = await get(client, site.url("/a?b=1"), headers={"Accept": "text/html"})
    assert (response.status, response.body, response.text, response.is_ok) == (200, b"hello", "hello", True)
    assert response.headers["x-kind"] == "x"
    assert response.url == site.url("/a?b=1")
    assert not response.is_truncated
    (request,) = site.requests
    assert request.headers["accept"] == "text/html"
    assert request.headers["user-agent"].startswith("Mozilla/5.0 (compatible; windlass")


async def test_a_body_can_be_posted_and_json_read() -> None:
    async with (
        Site({"/q": http_response('{"a": [1]}'), "/x": http_response("nonsense")}) as site,
        open_client() as client,
    ):
        request = WebRequest(url=site.url("/q"), method="POST", body=b'{"q": 1}', headers={"Authorization": "k"})
        assert (await client.send(request)).json() == {"a": [1]}
        with pytest.raises(WebFault, match=not_json(site.url("/x"))):
            (await get(client, site.url("/x"))).json()
    assert site.requests[0].body == b'{"q": 1}'
    assert site.requests[0].headers["authorization"] == "k"


async def test_a_connection_is_reused_and_cookies_are_not_stored() -> None:
    async with Site({"/": http_response("x", "Set-Cookie: id=1; Path=/")}) as site, open_client() as client:
        for _ in range(3):
            await get(client, site.url())
        assert site.connections == 1
    assert not any("cookie" in request.headers for request in site.requests)


async def test_loopback_is_reached_only_with_permission() -> None:
    async with Site({"/": http_response("private")}) as site, open_client(allow_loopback=False) as client:
        assert (await fault(client, site.url()))[0] == "refused"
        assert (await fault(client, site.url(host="localhost")))[0] == "refused"
        assert site.requests == []
        # The user's configuration of an endpoint permits it.
        assert (await get(client, site.url(), is_trusted=True)).text == "private"
        assert (await fault(client, site.url()))[0] == "refused"


async def test_a_trusted_endpoint_may_be_in_a_private_network_if_its_address_says_so() -> None:
    # There is no private network to test with, so a private name resolves to loopback.
    resolver = fake_resolver(searx_lan="127.0.0.1", far_lan="169.254.169.254")
    async with (
        Site({"/": http_response("found")}) as site,
        open_client(allow_loopback=False, resolver=resolver) as client,
    ):
        url = f"http://searx.lan:{site.port}/"
        assert (await get(client, url, is_trusted=True)).text == "found"
        assert (await fault(client, url))[0] == "refused"
        assert (await fault(client, "http://far.lan/", is_trusted=True))[0] == "refused"
        assert len(site.requests) == 1


async def test_a_trusted_public_name_may_not_resolve_to_loopback() -> None:
    async with (
        Site({"/": http_response("x")}) as site,
        open_client(allow_loopback=False, resolver=fake_resolver(a_test="127.0.0.1")) as client,
    ):
        kind, message = await fault(client, f"http://a.test:{site.port}/", is_trusted=True)
    assert (kind, site.requests) == ("refused", [])
    assert "a.test resolves to 127.0.0.1" in message


@pytest.mark.parametrize("answers", [["93.184.216.34", "10.0.0.1"], ["10.0.0.1", "93.184.216.34"], ["::ffff:10.0.0.1"]])
async def test_one_private_address_refuses_the_name(answers: list[str]) -> None:
    async with open_client(allow_loopback=False, resolver=fake_resolver(mixed_test=answers)) as client:
        kind, message = await fault(client, "http://mixed.test/")
    assert kind == "refused"
    assert NOT_PUBLIC in message


async def test_a_name_is_resolved_once_and_checked_for_every_connection() -> None:
    answers = [["127.0.0.1"], ["10.0.0.1"]]

    async def rebinding(host: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    async with (
        Site({"/": http_response("first", "Connection: close")}) as site,
        open_client(resolver=rebinding) as client,
    ):
        assert (await get(client, f"http://rebind.test:{site.port}/")).text == "first"
        assert len(answers) == 1
        kind, _ = await fault(client, f"http://rebind.test:{site.port}/")
        assert (kind, len(site.requests)) == ("refused", 1)
    assert site.requests[0].headers["host"] == f"rebind.test:{site.port}"


async def test_a_redirect_is_checked_like_the_first_address() -> None:
    locations = {
        "/metadata": "http://169.254.169.254/latest/",
        "/decimal": "http://2852039166/",
        "/file": "file:///etc/passwd",
        "/login": "http://user:pass@127.0.0.1/",
        "/private": "//10.0.0.1/",
        "/name": "http://inside.test/",
        "/port": "http://example.com:22/",
        "/slashes": "http:\\\\169.254.169.254/",
        "/v6": "http://[::ffff:169.254.169.254]/",
        "/half": "http://[::1",
        "/script": "javascript:alert(1)",
    }
    pages: dict[str, SiteResponse] = {path: redirect(location) for path, location in locations.items()}
    async with Site(pages) as site, open_client(resolver=fake_resolver(inside_test="192.168.0.1")) as client:
        kinds = {path: (await fault(client, site.url(path)))[0] for path in locations}
    assert kinds == dict.fromkeys(locations, "refused")
    assert site.paths == list(locations)


async def test_five_redirects_are_followed_and_a_sixth_is_not() -> None:
    chain = {f"/{n}": redirect(f"/{n + 1}") for n in range(10)}
    async with Site({**chain, "/5": http_response("there")}) as site, open_client() as client:
        assert (await get(client, site.url("/0"))).url == site.url("/5")
    async with Site(chain) as site, open_client() as client:
        assert await fault(client, site.url("/0")) == ("redirects", TOO_MANY_REDIRECTS)
    assert site.paths == [f"/{n}" for n in range(6)]


async def test_a_redirect_loop_is_detected() -> None:
    async with Site({"/a": redirect("/b"), "/b": redirect("/a#x")}) as site, open_client() as client:
        kind, message = await fault(client, site.url("/a"))
    assert kind == "redirects"
    assert REDIRECT_LOOP in message
    assert site.paths == ["/a", "/b"]


async def test_secret_headers_are_not_sent_to_another_origin() -> None:
    headers = {"Authorization": "Bearer k", "X-Api-Key": "k", "Cookie": "c", "Accept": "text/html"}
    async with Site({"/": http_response("there")}) as other, open_client() as client:
        pages = {"/same": redirect("/here"), "/here": http_response("x"), "/other": redirect(other.url())}
        async with Site({**pages, "/post": redirect("/here", 307), "/see": redirect("/here", 303)}) as site:
            await get(client, site.url("/same"), headers=headers)
            await get(client, site.url("/other"), headers=headers)
            await get(client, site.url("/post"), method="POST", body=b"x")
            await get(client, site.url("/see"), method="POST", body=b"x")
    assert site.requests[1].headers["authorization"] == "Bearer k"
    (request,) = other.requests
    assert not {"authorization", "x-api-key", "cookie"} & request.headers.keys()
    assert request.headers["accept"] == "text/html"
    assert [(request.method, request.body) for request in site.requests[-4:]] == [
        ("POST", b"x"),
        ("POST", b"x"),
        ("POST", b"x"),
        ("GET", b""),
    ]


async def test_a_trusted_endpoint_may_not_redirect_elsewhere() -> None:
    async with (
        Site({"/": http_response("x")}) as other,
        Site({"/": redirect(other.url())}) as site,
        open_client() as client,
    ):
        kind, _ = await fault(client, site.url(), is_trusted=True)
    assert (kind, other.requests) == ("redirects", [])


async def test_a_redirect_to_another_host_is_gated() -> None:
    gated: list[str] = []

    async def gate(target: object) -> str | None:
        gated.append(str(getattr(target, "host", "")))
        return "no." if len(gated) > 1 else None

    async with (
        Site({"/2": http_response("x")}) as site,
        open_client(resolver=fake_resolver(b_test="127.0.0.1", c_test="127.0.0.1")) as client,
    ):
        site.pages["/0"] = redirect("/1")
        site.pages["/1"] = redirect(f"http://b.test:{site.port}/2")
        assert (await get(client, site.url("/0"), gate=gate)).status == 200
        site.pages["/0"] = redirect(f"http://c.test:{site.port}/2")
        assert await fault(client, site.url("/0"), gate=gate) == ("denied", "no.")
    assert gated == ["b.test", "c.test"]
    assert site.paths == ["/0", "/1", "/2", "/0"]


async def test_https_is_verified_with_sni_and_never_downgraded(tmp_path: Path) -> None:
    file, context = certificate(tmp_path, "secure.test")
    seen: list[str | None] = []
    context.sni_callback = lambda _, name, __: seen.append(name)
    resolver = fake_resolver(secure_test="127.0.0.1", other_test="127.0.0.1")
    async with Site({"/": http_response("safe"), "/down": redirect("http://secure.test/")}, tls=context) as site:
        async with open_client(resolver=resolver, tls=lambda: ssl.create_default_context(cafile=str(file))) as client:
            assert (await get(client, site.url(host="secure.test"))).text == "safe"
            kind, message = await fault(client, site.url("/down", host="secure.test"))
            assert kind == "redirects"
            assert "from https to http" in message
            assert (await fault(client, site.url(host="other.test")))[0] == "tls"
        async with open_client(resolver=resolver) as client:
            kind, message = await fault(client, site.url(host="secure.test"))
            assert kind == "tls"
            assert "cannot be trusted" in message
    assert seen[:2] == ["secure.test", "other.test"]


async def test_an_unreachable_host_has_a_reason() -> None:
    async with open_client(resolver=fake_resolver(), timeout_s=0.5) as client:
        assert (await fault(client, "http://nowhere.test/"))[0] == "unknown_host"
        assert (await fault(client, f"http://127.0.0.1:{free_port()}/"))[0] == "unreachable"


async def test_a_server_that_does_not_accept_times_out() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        async with open_client(connect_timeout_s=0.2) as client, asyncio.timeout(5):
            kind, message = await fault(client, f"http://127.0.0.1:{port}/")
        for filler in fillers:
            filler.close()
    assert (kind, message) == ("timeout", no_connection("127.0.0.1", 0.2))


async def silent(request: SiteRequest, send: Send) -> None:
    await asyncio.Event().wait()


async def trickle(request: SiteRequest, send: Send) -> None:
    await send(response_head("Content-Type: text/html"))
    while True:
        await send(b"x")
        await asyncio.sleep(0.01)


async def endless_hints(request: SiteRequest, send: Send) -> None:
    while True:
        await send(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await asyncio.sleep(0)


@pytest.mark.parametrize("response", [silent, trickle, endless_hints])
async def test_slow_responses_time_out(response: SiteResponse) -> None:
    async with Site({"/": response}) as site, open_client(timeout_s=0.3) as client, asyncio.timeout(5):
        assert await fault(client, site.url()) == ("timeout", timed_out(0.3))


async def endless(request: SiteRequest, send: Send) -> None:
    await send(response_head("Content-Type: text/plain"))
    while True:
        await send(b"for ever " * 1000)


async def test_an_endless_response_is_truncated_at_the_limit() -> None:
    async with Site({"/": endless}) as site, open_client(max_bytes=50_000) as client, asyncio.timeout(5):
        response = await get(client, site.url())
    assert (len(response.body), response.is_truncated, response.is_bomb) == (50_000, True, False)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"nonsense\r\n\r\n", "broken"),
        (b"", "broken"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", "broken"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000, "broken"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "broken"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", "encoding"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc", "encoding"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\nContent-Length: 3\r\n\r\nabc", "encoding"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://\xff/\r\nContent-Length: 0\r\n\r\n", "refused"),
    ],
)
async def test_broken_responses_are_classified(raw: bytes, kind: FaultKind) -> None:
    async def respond(request: SiteRequest, send: Send) -> None:
        await send(raw)

    async with Site({"/": respond}) as site, open_client() as client:
        assert (await fault(client, site.url()))[0] == kind


async def test_compressed_responses_are_decompressed() -> None:
    data = gzip.compress(b"hello ") + gzip.compress(b"world")
    async with Site({"/": http_response(data, "Content-Encoding: gzip")}) as site, open_client() as client:
        assert (await get(client, site.url())).text == "hello world"
    assert site.requests[0].headers["accept-encoding"] == "gzip, deflate"


async def test_the_client_works_after_a_cancelled_request() -> None:
    requested = asyncio.Event()

    async def hang(request: SiteRequest, send: Send) -> None:
        requested.set()
        await asyncio.Event().wait()

    async with Site({"/": hang, "/ok": http_response("x")}) as site, open_client() as client:
        task = asyncio.ensure_future(get(client, site.url()))
        await requested.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await get(client, site.url("/ok"))).text == "x"


async def test_http2_is_negotiated_and_shares_one_connection(tmp_path: Path) -> None:
    file, context = certificate(tmp_path, "fast.test")

    def tls() -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(file))

    async with (
        Http2Site(context, b"both ways") as site,
        open_client(resolver=fake_resolver(fast_test="127.0.0.1"), tls=tls) as client,
    ):
        urls = [f"https://fast.test:{site.port}/{n}" for n in range(6)]
        responses = await asyncio.gather(*(get(client, url) for url in urls))
    assert [response.text for response in responses] == ["both ways"] * 6

    assert site.connections == 1
    assert set(site.authorities) == {f"fast.test:{site.port}"}
