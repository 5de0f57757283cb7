"""Copies bytes between two connections, with limits on time and memory."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from http import HTTPStatus

from agent.backends.egress.proxy_http import Framing, ProxyHttpError
from tooling.contract.fast_dataclass import dataclass

CHUNK_BYTES = 65_536
# Time for a refused client to read its response, and the interval of reading its input meanwhile.
LINGER_S = 1.0
LINGER_READS = 64
_MAX_TRAILERS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressLimits:
    """Time and memory limits of a connection, and the number of connections."""

    head_bytes: int = 32_768
    head_s: float = 10.0
    connect_s: float = 10.0
    idle_s: float = 120.0
    half_open_s: float = 20.0
    total_s: float = 3600.0
    connections: int = 256


class Peer:
    """One end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer
        # Without a write buffer, sent bytes are already in the kernel and are delivered even if the connection ends.
        writer.transport.set_write_buffer_limits(high=0)

    async def send(self, data: bytes) -> None:
        """Write and wait until all bytes are in the kernel."""
        self._writer.write(data)
        await self._writer.drain()

    def send_eof(self) -> None:
        """Close the sending side."""
        if self._writer.can_write_eof() and not self._writer.is_closing():
            self._writer.write_eof()

    async def close_gracefully(self) -> None:
        """Let the peer read its last bytes: closing with unread input would discard them."""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(LINGER_S):
                self.send_eof()
                for _ in range(LINGER_READS):
                    if not await self.reader.read(CHUNK_BYTES):
                        return

    def abort(self) -> None:
        """Close immediately."""
        self._writer.transport.abort()


class IdleTimeout:
    """A timeout that is extended whenever bytes are transferred."""

    def __init__(self, timeout: asyncio.Timeout, limits: EgressLimits) -> None:
        self._timeout = timeout
        self._half_open_s = limits.half_open_s
        self._idle_s = limits.idle_s

    def touch(self) -> None:
        """Extend the timeout."""
        self._timeout.reschedule(asyncio.get_running_loop().time() + self._idle_s)

    def mark_half_open(self) -> None:
        """Use the shorter timeout, because one side has ended."""
        self._idle_s = min(self._idle_s, self._half_open_s)
        self.touch()


async def read_head(peer: Peer) -> bytes | None:
    """Read up to the empty line; return None if the peer closed without sending anything."""
    try:
        return await peer.reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise ProxyHttpError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too large") from error
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise ConnectionResetError("the message ended too early") from error
        return None


async def pipe_both_ways(client: Peer, server: Peer, limits: EgressLimits) -> None:
    """Copy bytes both ways until both sides have ended. Raises OSError or TimeoutError."""
    async with asyncio.timeout(limits.idle_s) as timeout:
        idle = IdleTimeout(timeout, limits)
        await run_concurrently(_pipe(client, server, idle), _pipe(server, client, idle))


async def copy_until_end(source: Peer, sink: Peer, touch: Callable[[], None]) -> None:
    """Copy bytes until the source ends."""
    while data := await source.reader.read(CHUNK_BYTES):
        touch()
        await sink.send(data)
        touch()


async def copy_body(source: Peer, sink: Peer, framing: Framing, touch: Callable[[], None]) -> None:
    """Copy exactly one request body, and nothing that follows it."""
    if framing != "chunked":
        await _copy_bytes(source, sink, framing, touch)
        return
    while size := _chunk_size(await _read_line(source)):
        await sink.send(b"%x\r\n" % size)
        await _copy_bytes(source, sink, size, touch)
        if await _read_line(source) != b"\r\n":
            raise _malformed_body()
        await sink.send(b"\r\n")
    for _ in range(_MAX_TRAILERS):
        if await _read_line(source) == b"\r\n":
            await sink.send(b"0\r\n\r\n")
            return
    raise _malformed_body()


async def run_concurrently(*jobs: Coroutine[None, None, None]) -> None:
    """Run coroutines concurrently; the first exception cancels the others and is raised."""
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pipe(source: Peer, sink: Peer, idle: IdleTimeout) -> None:
    await copy_until_end(source, sink, idle.touch)
    sink.send_eof()
    idle.mark_half_open()


async def _copy_bytes(source: Peer, sink: Peer, count: int, touch: Callable[[], None]) -> None:
    while count > 0:
        data = await source.reader.read(min(count, CHUNK_BYTES))
        if not data:
            raise ConnectionResetError("the request ended too early")
        await sink.send(data)
        touch()
        count -= len(data)


async def _read_line(source: Peer) -> bytes:
    try:
        line = await source.reader.readline()
    except ValueError as error:
        raise _malformed_body() from error
    if not line.endswith(b"\r\n"):
        raise _malformed_body()
    return line


def _chunk_size(line: bytes) -> int:
    digits = line.removesuffix(b"\r\n").partition(b";")[0].rstrip(b" \t")
    if not 0 < len(digits) <= 8 or digits.strip(b"0123456789abcdefABCDEF"):
        raise _malformed_body()
    return int(digits, 16)


def _malformed_body() -> ProxyHttpError:
    return ProxyHttpError(HTTPStatus.BAD_REQUEST, "the request body is malformed")
