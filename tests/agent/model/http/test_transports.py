"""Both transports against real servers: connections, TLS, proxies, compression, and what goes wrong."""

import asyncio
import gzip
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from agent.model.faults import ModelFault
from agent.model.http.exchange import HttpExchange, Timeouts, Transports
from agent.model.http.httpx_transport import HttpxTransport
from agent.model.http.stream_transport import StreamTransport
from agent.model.http.transport_port import HttpRequest, Transport
from tests.agent.backends.egress.proxy_harness import certificate, free_port
from tests.tooling.web.site import Site, SiteRequest, http_response, response_head

Opener: TypeAlias = Callable[[Mapping[str, str]], Transport]
Send: TypeAlias = Callable[[bytes], Awaitable[None]]
TIMEOUTS = Timeouts(connect_s=10, first_byte_s=10, between_chunks_s=10)


@pytest.fixture(params=["streams", "httpx"])
def open_transport(request: pytest.FixtureRequest) -> Opener:
    if request.param == "streams":
        return StreamTransport
    return lambda environ: HttpxTransport(environ, environ.get("all_proxy", ""))


async def post(transport: Transport, url: str, content: bytes = b"{}", **headers: str) -> tuple[int, bytes]:
    exchange = HttpExchange(transport, TIMEOUTS)
    try:
        response = await exchange.send(HttpRequest(url=url, headers=headers, content=content))
        return response.status, await exchange.read_all()
    finally:
        await exchange.close()


async def fault_of(sending: Awaitable[object]) -> ModelFault:
    with pytest.raises(ModelFault) as caught:
        await sending
    return caught.value


@asynccontextmanager
async def tunnel_proxy(target: int, answer: bytes = b"HTTP/1.1 200 OK\r\n\r\n") -> AsyncIterator[tuple[int, list[str]]]:
    """Run a proxy that sends every tunnel to a port on loopback; yield its port and the heads of its requests."""
    heads: list[str] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(answer)
        if b" 200 " in answer:
            there, back = await asyncio.open_connection("127.0.0.1", target)
            await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heads


async def test_a_request_arrives_as_it_was_sent(open_transport: Opener) -> None:
    transport = open_transport({})
    async with Site({"/v1/x?a=b": http_response("yes")}) as site:
        answer = await post(transport, site.url("/v1/x?a=b"), b"\x00\xffbody", Authorization="Bearer key")
        await transport.close()
    (request,) = site.requests
    assert answer == (200, b"yes")
    assert (request.method, request.path, request.body) == ("POST", "/v1/x?a=b", b"\x00\xffbody")
    assert request.headers["host"] == f"127.0.0.1:{site.port}"
    assert request.headers["authorization"] == "Bearer key"


async def test_connections_are_reused_in_turn_and_never_shared(open_transport: Opener) -> None:
    transport = open_transport({})
    async with Site({"*": http_response("yes")}) as site:
        for _ in range(3):
            await post(transport, site.url())
        assert site.connections == 1
        await asyncio.gather(*(post(transport, site.url()) for _ in range(4)))
        assert site.connections <= 5
        await transport.close()
        await transport.close()


async def test_a_large_request_and_a_large_reply_pass(open_transport: Opener) -> None:
    transport, content = open_transport({}), b"x" * 20_000_000
    async with Site({"*": http_response(b"y" * 5_000_000)}) as site:
        status, body = await post(transport, site.url(), content)
        await transport.close()
    assert (status, len(body), len(site.requests[0].body)) == (200, 5_000_000, 20_000_000)


async def test_a_connection_that_the_server_closed_is_replaced(open_transport: Opener) -> None:
    answers = [response_head("Content-Length: 2") + b"ok"] * 3

    async def answer_and_close(request: SiteRequest, send: Send) -> None:
        await send(answers.pop())

    transport = open_transport({})
    async with Site({"*": answer_and_close}) as site:
        assert [await post(transport, site.url()) for _ in range(3)] == [(200, b"ok")] * 3
        await transport.close()


async def test_a_connection_closed_in_the_moment_of_its_reuse_is_replaced() -> None:
    """A server that answers once and hangs up when the second request arrives has not seen that request."""
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n{}")
        seen.append(b"")
        writer.write(http_response("yes"))
        await reader.readuntil(b"\r\n\r\n{}")
        writer.transport.abort()

    transport = StreamTransport({})
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        assert [await post(transport, url) for _ in range(2)] == [(200, b"yes")] * 2
        await transport.close()
    assert len(seen) == 2


async def test_a_prepared_connection_carries_the_first_request() -> None:
    transport = StreamTransport({})
    async with Site({"*": http_response("yes")}) as site:
        transport.prepare(site.url("/v1"), 10)
        transport.prepare(site.url("/v1"), 10)
        assert await post(transport, site.url("/v1/chat")) == (200, b"yes")
        assert site.connections == 1
        transport.prepare(site.url("/v1"), 10)
        await transport.close()
    assert site.connections == 1


async def test_a_connection_that_could_not_be_prepared_fails_the_request_that_wants_it() -> None:
    transport, url = StreamTransport({}), f"http://127.0.0.1:{free_port()}/"
    transport.prepare(url, 10)
    fault = await fault_of(post(transport, url))
    await transport.close()
    assert (fault.kind, fault.detail.endswith(": Connection refused")) == ("connect", True)


async def test_a_compressed_reply_is_decoded(open_transport: Opener) -> None:
    transport, text = open_transport({}), b"a long reply " * 200_000
    async with Site({"*": http_response(gzip.compress(text), "Content-Encoding: gzip")}) as site:
        assert await post(transport, site.url()) == (200, text)
        await transport.close()


PACKED = gzip.compress(b"hello " * 1000, mtime=0)


@pytest.mark.parametrize("body", [PACKED[:-20], PACKED[:15] + b"???" + PACKED[18:]], ids=["cut", "damaged"])
async def test_a_compressed_reply_that_is_damaged_or_cut_is_malformed(body: bytes) -> None:
    transport = StreamTransport({})
    async with Site({"*": http_response(body, "Content-Encoding: gzip")}) as site:
        fault = await fault_of(post(transport, site.url()))
        await transport.close()
    assert fault.kind == "malformed"


async def test_a_reply_in_an_unknown_coding_is_malformed() -> None:
    transport = StreamTransport({})
    async with Site({"*": http_response(b"x", "Content-Encoding: br")}) as site:
        fault = await fault_of(post(transport, site.url()))
        await transport.close()
    assert (fault.kind, "'br'" in fault.detail) == ("malformed", True)


@pytest.mark.parametrize("body", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"])
async def test_a_server_of_another_protocol_is_malformed(body: bytes) -> None:
    transport = StreamTransport({})
    async with Site({"*": body}) as site:
        fault = await fault_of(post(transport, site.url()))
        await transport.close()
    assert fault.kind == "malformed"


async def test_an_unknown_host_is_a_connect_fault_with_its_name(open_transport: Opener) -> None:
    transport = open_transport({})
    fault = await fault_of(post(transport, "http://provider.invalid/v1"))
    await transport.close()
    assert (fault.kind, fault.detail.startswith("provider.invalid: ")) == ("connect", True)


async def test_a_header_that_cannot_be_sent_is_refused_without_quoting_it(open_transport: Opener) -> None:
    transport = open_transport({})
    async with Site() as site:
        fault = await fault_of(post(transport, site.url(), Authorization="Bearer a\r\nX: y"))
        await transport.close()
    assert (fault.kind, "Bearer" in str(fault), site.requests) == ("refused", False, [])


@pytest.mark.parametrize("url", ["ftp://host/x", "http://", "http://host:999999/", "http://[::1/x", "no url"])
async def test_what_is_not_a_url_is_a_connect_fault(url: str) -> None:
    transport = StreamTransport({})
    assert (await fault_of(post(transport, url))).kind == "connect"
    await transport.close()


async def test_a_server_on_ipv6_is_reached_and_named_correctly() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(http_response("six"))
        writer.close()

    heads: list[str] = []
    try:
        server = await asyncio.start_server(serve, "::1", 0)
    except OSError:
        pytest.skip("this machine has no IPv6")
    transport = StreamTransport({})
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await post(transport, f"http://[::1]:{port}/") == (200, b"six")
        await transport.close()
    assert f"Host: [::1]:{port}\r\n" in heads[0]


@pytest.mark.needs("openssl")
async def test_tls_is_checked_against_the_certificates_of_the_environment(
    open_transport: Opener, tmp_path: Path
) -> None:
    file, context = certificate(tmp_path, "localhost")
    trusting, strict = open_transport({"SSL_CERT_FILE": str(file)}), open_transport({})
    async with Site({"*": http_response("safe")}, tls=context) as site:
        url = site.url(host="localhost")
        assert await post(trusting, url) == (200, b"safe")
        assert await post(trusting, url) == (200, b"safe")
        assert site.connections == 1
        fault = await fault_of(post(strict, url))
        wrong_name = await fault_of(post(trusting, site.url()))
        await trusting.close()
        await strict.close()
    assert (fault.kind, wrong_name.kind) == ("connect", "connect")
    assert len(site.requests) == 2


@pytest.mark.needs("openssl")
async def test_a_proxy_opens_a_tunnel_that_it_cannot_read(open_transport: Opener, tmp_path: Path) -> None:
    file, context = certificate(tmp_path, "provider.test")
    async with Site({"*": http_response("through")}, tls=context) as site, tunnel_proxy(site.port) as (port, heads):
        transport = open_transport({"SSL_CERT_FILE": str(file), "all_proxy": f"http://us%40er:pa:ss@127.0.0.1:{port}"})
        for _ in range(2):
            assert await post(transport, "https://provider.test/v1", Authorization="Bearer key") == (200, b"through")
        await transport.close()
    (head,) = heads
    assert head.startswith("CONNECT provider.test:443 HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {b64encode(b'us@er:pa:ss').decode()}\r\n" in head
    assert "Bearer" not in head


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", b"220 mail\r\n", b""])
async def test_a_proxy_that_opens_no_tunnel_is_a_connect_fault(answer: bytes) -> None:
    async with tunnel_proxy(1, answer) as (port, _):
        transport = StreamTransport({"https_proxy": f"127.0.0.1:{port}"})
        fault = await fault_of(post(transport, "https://provider.test/v1"))
        await transport.close()
    assert (fault.kind, "proxy" in fault.detail) == ("connect", True)


def test_unusual_routes_are_left_to_httpx() -> None:
    def kind(url: str, **environ: str) -> type[Transport]:
        return type(Transports(environ).choose(url))

    assert kind("https://host/v1") is StreamTransport
    assert kind("https://host/v1", https_proxy="http://proxy:3128") is StreamTransport
    assert kind("https://host/v1", https_proxy="https://proxy:3128") is HttpxTransport
    assert kind("https://user:key@host/v1") is HttpxTransport
    assert kind("http://127.0.0.1/v1", all_proxy="socks5://proxy") is StreamTransport


def test_a_socks_proxy_without_its_library_names_it() -> None:
    with pytest.raises(ModelFault) as caught:
        Transports({"all_proxy": "socks5://127.0.0.1:1"}).choose("https://host/v1")
    assert "httpx[socks]" in str(caught.value)


async def test_a_read_that_is_cancelled_leaves_no_connection_open() -> None:
    async def stay_silent(request: SiteRequest, send: Send) -> None:
        is_asked.set()
        await asyncio.Event().wait()

    is_asked, transport = asyncio.Event(), StreamTransport({})
    async with Site({"*": stay_silent}) as site:
        asking = asyncio.create_task(post(transport, site.url()))
        await is_asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await transport.close()
