"""The egress proxy with real servers on loopback: what it forwards and what it refuses."""

import asyncio
import os
import ssl
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.backends.egress.host_rules import EgressRules
from agent.backends.egress.proxy import EgressProxy
from agent.backends.egress.proxy_connection import NO_CLIENT_HELLO
from agent.backends.egress.relay import proxy_environment, relay_argv
from agent.backends.egress.tls_sni import NOT_TLS
from tests.agent.backends.egress.proxy_harness import (
    HELLO,
    PUBLIC,
    SHORT_LIMITS,
    ProxyHarness,
    Server,
    certificate,
    connect,
    fake_resolver,
    free_port,
    get,
    run_proxy,
)
from tests.programs import needs


async def test_a_plain_request_reaches_the_allowed_host() -> None:
    async with Server() as server, run_proxy(ports=[server.port]) as here:
        url = f"http://example.test:{server.port}/a?b=1"
        answer = await here.exchange(get(url, "Host: forged.test", "Proxy-Connection: keep-alive", "X-Kept: 1"))
    assert answer == b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
    host = f"Host: example.test:{server.port}"
    assert server.heads == [f"GET /a?b=1 HTTP/1.1\r\n{host}\r\nX-Kept: 1\r\nConnection: close\r\n\r\n".encode()]
    assert here.decisions == [("example.test", server.port, True)]
    assert here.attempts[0].reason == "allowed by the rule example.test"


async def test_one_connection_carries_one_request() -> None:
    async with Server() as server, run_proxy(ports=[server.port]) as here:
        first = get(f"http://example.test:{server.port}/one")
        second = get(f"http://example.test:{server.port}/two", "Host: internal.test")
        answer = await here.exchange(first + second)
    assert answer.count(b"HTTP/1.1 200 OK") == 1
    assert [head.split(b" ")[1] for head in server.heads] == [b"/one"]


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        (("Content-Length: 5",), b"12345GET / HTTP/1.1\r\n\r\n", b"12345"),
        (
            ("Transfer-Encoding: chunked",),
            b"3;ext=1\r\nabc\r\n002\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
            b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        ),
    ],
)
async def test_exactly_one_request_body_is_forwarded(headers: tuple[str, ...], body: bytes, expected: bytes) -> None:
    bodies: list[bytes] = []
    is_over = asyncio.Event()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        bodies.append(await reader.readexactly(len(expected)))
        writer.write(HELLO)
        writer.write_eof()
        bodies.append(await reader.read())
        is_over.set()

    async with Server(receive) as server, run_proxy(ports=[server.port]) as here:
        answer = await here.exchange(get(f"http://example.test:{server.port}/", *headers, method="POST"), body)
        await asyncio.wait_for(is_over.wait(), 5)
    assert answer.endswith(b"hello")
    assert bodies == [expected, b""]


@pytest.mark.parametrize("body", [b"xyz\r\n", b"-1\r\n", b"123456789\r\n", b"3\r\nabcdef\r\n", b"3\nabc\n", b"\r\n"])
async def test_a_malformed_chunk_is_a_bad_request(body: bytes) -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with Server(wait) as server, run_proxy(ports=[server.port]) as here:
        request = get(f"http://example.test:{server.port}/", "Transfer-Encoding: chunked", method="POST")
        assert await here.status(request, body) == 400


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (connect("other.test:443"), 403),
        (connect("www.example.test:443"), 403),
        (connect("example.test:80"), 403),
        (connect("example.test:22"), 403),
        (connect("example.test:8443"), 403),
        (connect("127.0.0.1:443"), 403),
        (connect("8.8.8.8:443"), 403),
        (connect("[::1]:443"), 403),
        (connect("2130706433:443"), 400),
        (connect("example.test"), 400),
        (connect("example.test:"), 403),
        (connect("example.test:x"), 403),
        (connect("example.test:999999"), 403),
        (connect("user@example.test:443"), 400),
        (connect("localhost:443"), 403),
        (get("http://other.test/"), 403),
        (get("http://example.test:443/"), 403),
        (get("http://example.test:8080/"), 403),
        (get("http://93.184.216.34/"), 403),
        (get("http://169.254.169.254/"), 400),
        (get("http://0x7f.1/"), 400),
        (get("http://user:pw@example.test/"), 400),
        (get("https://example.test/"), 400),
        (get("ftp://example.test/"), 400),
        (get("/"), 400),
        (get("*", method="OPTIONS"), 400),
        (b"\x05\x01\x00\r\n\r\n", 400),
        (b"GET http://example.test/ HTTP/1.1\nHost: x\n\nX: y\r\n\r\n", 400),
    ],
    ids=repr,
)
async def test_other_requests_are_refused_and_reported(request_bytes: bytes, status: int) -> None:
    async with run_proxy() as here:
        assert await here.status(request_bytes) == status
        assert [attempt.allowed for attempt in here.attempts] == [False]


async def test_the_deny_list_wins_over_hosts_that_are_added_later() -> None:
    async with (
        Server() as server,
        run_proxy(allow=[".example.test"], deny=["www.example.test"], ports=[server.port]) as here,
    ):
        assert await here.status(get(f"http://www.example.test:{server.port}/")) == 403
        assert await here.status(get(f"http://added.test:{server.port}/")) == 403
        here.proxy.allow("added.test")
        here.proxy.allow("www.example.test")
        assert await here.status(get(f"http://added.test:{server.port}/")) == 502
        assert await here.status(get(f"http://www.example.test:{server.port}/")) == 403
    assert [attempt.allowed for attempt in here.attempts] == [False, False, True, False]
    assert "not known here" in here.attempts[2].reason


async def test_the_status_line_of_a_refusal_has_the_reason() -> None:
    async with run_proxy() as here:
        answer = await here.exchange(connect("other.test:443"))
    line = answer.split(b"\r\n")[0]
    assert line == b"HTTP/1.1 403 other.test is not an allowed host; allow it with --allow-net other.test"


@pytest.mark.parametrize("answers", [["127.0.0.1"], [PUBLIC, "10.0.0.1"], ["::ffff:169.254.169.254"], ["fe80::1"]])
async def test_a_name_with_a_private_address_is_refused_without_revealing_it(answers: list[str]) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return answers

    async with run_proxy(resolver=resolve, allow_loopback=False) as here:
        answer = await here.exchange(connect("example.test:443"))
        assert answer.startswith(b"HTTP/1.1 403 example.test does not resolve to a public address")
        assert here.decisions == [("example.test", 443, False)]
        assert not any(address in answer.decode() for address in answers)
        assert "not a public address" in here.attempts[0].reason


async def test_the_proxy_connects_to_the_address_it_checked() -> None:
    asked: list[str] = []
    reached: list[tuple[str, int]] = []

    async def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return [PUBLIC] if len(asked) == 1 else ["127.0.0.1"]

    async with Server() as server:

        async def to_server(address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            reached.append((address, port))
            return await asyncio.open_connection("127.0.0.1", server.port)

        async with run_proxy(resolver=rebinding, connect=to_server, allow_loopback=False) as here:
            assert await here.status(get("http://example.test/")) == 200
            assert await here.status(get("http://example.test/")) == 403
    assert reached == [(PUBLIC, 80)]
    assert asked == ["example.test"] * 2


async def test_the_next_address_is_tried_if_one_does_not_answer() -> None:
    async def two(host: str, port: int) -> Sequence[str]:
        return [PUBLIC, "127.0.0.1"]

    async def connect_to(address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if address == PUBLIC:
            await asyncio.Event().wait()
        return await asyncio.open_connection(address, port)

    async with (
        Server() as server,
        run_proxy(ports=[server.port], resolver=two, connect=connect_to, limits=SHORT_LIMITS) as here,
    ):
        assert await here.status(get(f"http://example.test:{server.port}/")) == 200


async def test_an_unreachable_server_is_a_bad_gateway() -> None:
    async with Server() as server:
        port = server.port
    async with run_proxy(ports=[port]) as here:
        assert await here.status(connect(f"example.test:{port}")) == 502
        assert here.decisions == [("example.test", port, True)]
        assert "but the connection failed" in here.attempts[0].reason


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 20_000])
async def test_a_server_that_does_not_speak_http_is_a_bad_gateway(answer: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    async with Server(speak) as server, run_proxy(ports=[server.port]) as here:
        assert await here.status(get(f"http://example.test:{server.port}/")) in (502, 431)


@pytest.mark.parametrize("target", ["example.test", "EXAMPLE.test."])
async def test_a_tls_tunnel_carries_data_both_ways(tmp_path: Path, target: str) -> None:
    file, tls = certificate(tmp_path, "example.test")
    async with Server(tls=tls) as server, run_proxy(ports=[server.port]) as here:
        reader, writer = await here.open()
        writer.write(connect(f"{target}:{server.port}"))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connection established\r\n\r\n"
        await writer.start_tls(ssl.create_default_context(cafile=str(file)), server_hostname="example.test")
        writer.write(b"GET / HTTP/1.1\r\nHost: example.test\r\n\r\n")
        assert await reader.read() == HELLO
        writer.close()
    assert here.decisions == [("example.test", server.port, True)]


async def _send_through_tunnel(here: ProxyHarness, port: int, *parts: bytes) -> bytes:
    answer = await here.exchange(connect(f"example.test:{port}"), *parts)
    return answer.removeprefix(b"HTTP/1.1 200 Connection established\r\n\r\n")


async def test_a_tunnel_whose_client_hello_names_another_server_is_closed() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    outgoing = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="hidden.test").do_handshake()
    async with Server() as server, run_proxy(ports=[server.port]) as here:
        assert await _send_through_tunnel(here, server.port, outgoing.read()) == b""
    assert server.heads == []
    assert here.decisions == [("example.test", server.port, False)]
    assert here.attempts[0].reason == "the TLS client asks for 'hidden.test' instead of example.test"


async def test_a_tunnel_is_for_tls_only() -> None:
    async with Server() as server, run_proxy(ports=[server.port], limits=SHORT_LIMITS) as here:
        assert await _send_through_tunnel(here, server.port, b"GET / HTTP/1.1\r\n\r\n") == b""
        assert await _send_through_tunnel(here, server.port) == b""
    assert server.heads == []
    assert [attempt.reason for attempt in here.attempts] == [
        NOT_TLS,
        NO_CLIENT_HELLO,
    ]


async def test_the_socket_is_private_and_removed_on_close(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 20) / ("er" * 30)
    proxy = EgressProxy(EgressRules(), lambda attempt: None, resolver=fake_resolver())
    for _ in range(2):
        path = await proxy.start(folder)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        await proxy.close()
        assert not path.exists()
    await proxy.close()


async def test_a_folder_that_others_can_read_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(PermissionError, match="not private"):
        await EgressProxy(EgressRules(), lambda attempt: None).start(folder)


@needs("curl")
async def test_curl_works_through_the_relay_and_the_proxy(tmp_path: Path) -> None:
    file, tls = certificate(tmp_path, "example.test")
    async with Server() as plain, Server(tls=tls) as secure, run_proxy(ports=[plain.port, secure.port]) as here:
        found = []
        for url in (
            f"http://example.test:{plain.port}/",
            f"https://example.test:{secure.port}/",
            f"https://other.test:{secure.port}/",
            f"http://127.0.0.1:{plain.port}/",
        ):
            front = free_port()
            words = relay_argv(
                ("curl", "-sS", "-m", "10", "--noproxy", "", "--cacert", str(file), url),
                socket_path=str(here.socket),
                port=front,
            )
            curl = await asyncio.create_subprocess_exec(
                *words,
                env={"PATH": os.environ["PATH"], **proxy_environment(front)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            out, err = await curl.communicate()
            found.append((curl.returncode, out + err))
    assert found[:2] == [(0, b"hello"), (0, b"hello")]
    assert found[2][0] == 56 and b"403" in found[2][1]
    assert b"IP address" in found[3][1]
