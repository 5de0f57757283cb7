"""How conversations with the egress proxy end: slow, silent, half-open, endless, too many, and at closing."""

import asyncio
import contextlib
import ssl

import pytest

from agent.backends.egress.stream import EgressLimits
from tests.agent.backends.egress.proxy_harness import SHORT_LIMITS, Server, connect, get, run_proxy


async def _drip(writer: asyncio.StreamWriter) -> None:
    """Send a head that never ends, a byte at a time: that wins no more time than silence."""
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(b"G")
            await writer.drain()
            await asyncio.sleep(0.01)


async def test_a_slow_head_and_a_large_head_end() -> None:
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


async def test_a_silent_server_ends_by_the_idle_limit() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with Server(hang) as server, run_proxy(ports=[server.port], limits=SHORT_LIMITS) as here:
        assert await here.exchange(get(f"http://example.test:{server.port}/")) == b""


async def test_an_endless_trickle_ends_by_the_total_limit() -> None:
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


async def test_a_half_open_tunnel_ends() -> None:
    closed = asyncio.Event()

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        # Says nothing and does not close: the proxy has to.
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


async def test_a_slow_reader_stops_the_sender_instead_of_filling_memory() -> None:
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()
            sent += 65_536

    limits = EgressLimits(idle_s=0.5)
    async with Server(pour) as server, run_proxy(ports=[server.port], limits=limits) as here:
        reader, writer = await here.open()
        writer.write(get(f"http://example.test:{server.port}/"))
        await reader.readuntil(b"\r\n\r\n")
        async with asyncio.timeout(5):
            # The proxy gives up on a client that reads nothing; until then only socket buffers fill.
            while here.proxy.open_connections:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        writer.close()
    assert sent < 30_000_000


async def test_too_many_connections_are_turned_away() -> None:
    async with run_proxy(limits=EgressLimits(connections=2)) as here:
        held = [await here.open() for _ in range(2)]
        assert await here.status(get("http://example.test/")) == 503
        for _, writer in held:
            writer.close()


@pytest.mark.parametrize("rounds", range(6))
async def test_closing_ends_every_connection(rounds: int) -> None:
    async with run_proxy() as here, asyncio.timeout(5):
        reader, writer = await here.open()
        # Closing may come before, amid and after the moment in which the connection is accepted.
        for _ in range(rounds):
            await asyncio.sleep(0)
        await here.proxy.close()
        assert await reader.read() == b""
        assert here.proxy.open_connections == 0
        writer.close()
