"""How connections to the egress proxy end: slow, silent, half-open, endless, too many, and on close."""

import asyncio
import contextlib
import ssl

import pytest

from agent.backends.egress.stream import EgressLimits
from tests.agent.backends.egress.proxy_harness import SHORT_LIMITS, Server, connect, get, run_proxy


async def _drip(writer: asyncio.StreamWriter) -> None:
    """Send an endless head byte by byte, which must not extend the time limit."""
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(b"G")
            await writer.drain()
            await asyncio.sleep(0.01)


async def test_a_slow_or_too_large_head_is_refused() -> None:
    async with run_proxy(limits=SHORT_LIMITS) as here:
        assert await here.status(b"GET http://example.test/ HTTP/1.1\r\nX: ") == 408
        assert await here.status(b"GET http://example.test/ HTTP/1.1\r\n" + b"X: 1\r\n" * 5000) == 431
        reader, writer = await here.open()
        dripping = asyncio.create_task(_drip(writer))
        async with asyncio.timeout(5):
            assert (await reader.read()).startswith(b"HTTP/1.1 408")
        dripping.cancel()
        writer.close()
    assert [attempt.allowed for attempt in here.attempts] == [False] * 3


async def test_a_silent_server_is_cut_off_at_the_idle_limit() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with Server(hang) as server, run_proxy(ports=[server.port], limits=SHORT_LIMITS) as here:
        assert await here.exchange(get(f"http://example.test:{server.port}/")) == b""


async def test_an_endless_response_is_cut_off_at_the_total_limit() -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.01)

    limits = EgressLimits(idle_s=5, total_s=0.4)
    async with Server(trickle) as server, run_proxy(ports=[server.port], limits=limits) as here:
        answer = await here.exchange(get(f"http://example.test:{server.port}/"))
    assert answer.startswith(b"HTTP/1.1 200 OK") and answer.endswith(b"...")


async def test_a_half_open_tunnel_is_closed() -> None:
    closed = asyncio.Event()

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        # Neither answers nor closes, so the proxy has to.
        closed.set()
        await asyncio.Event().wait()

    outgoing = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(
            ssl.MemoryBIO(), outgoing, server_hostname="example.test"
        ).do_handshake()
    limits = EgressLimits(half_open_s=0.1)
    async with Server(keep) as server, run_proxy(ports=[server.port], limits=limits) as here, asyncio.timeout(5):
        reader, writer = await here.open()
        writer.write(connect(f"example.test:{server.port}"))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(outgoing.read())
        writer.write_eof()
        assert await reader.read() == b""
        await closed.wait()
        writer.close()


async def test_a_client_that_does_not_read_stops_the_server_instead_of_filling_memory() -> None:
    sent = 0
    is_cut_off = asyncio.Event()

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 65_536)
                await writer.drain()
                sent += 65_536
        finally:
            is_cut_off.set()

    limits = EgressLimits(idle_s=0.5)
    async with Server(pour) as server, run_proxy(ports=[server.port], limits=limits) as here:
        reader, writer = await here.open()
        writer.write(get(f"http://example.test:{server.port}/"))
        await reader.readuntil(b"\r\n\r\n")
        # Until the proxy gives up on the client, only socket buffers are filled.
        await asyncio.wait_for(is_cut_off.wait(), 30)
        writer.close()
    assert sent < 30_000_000


async def test_connections_beyond_the_limit_are_refused() -> None:
    async with run_proxy(limits=EgressLimits(connections=2)) as here:
        held = [await here.open() for _ in range(2)]
        assert await here.status(get("http://example.test/")) == 503
        for _, writer in held:
            writer.close()


@pytest.mark.parametrize("rounds", range(6))
async def test_closing_ends_every_connection(rounds: int) -> None:
    async with run_proxy() as here, asyncio.timeout(5):
        reader, writer = await here.open()
        # Close before, while and after the connection is accepted.
        for _ in range(rounds):
            await asyncio.sleep(0)
        await here.proxy.close()
        assert await reader.read() == b""
        writer.close()
