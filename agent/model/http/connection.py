"""One connection to a server: TCP, TLS, or a tunnel through an HTTP proxy."""

import asyncio
import ssl
from os import strerror
from typing import Self

_PAUSE_ABOVE_BYTES = 1024 * 1024
# Delay before the next address is tried in parallel (RFC 8305).
_HAPPY_EYEBALLS_S = 0.25


class Connection(asyncio.Protocol):
    """Reads and writes bytes; `read` returns nothing at the end of the stream."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._is_ended = False
        self._is_paused = False
        self._error: Exception | None = None
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._lost = asyncio.Event()
        self._writable.set()

    @classmethod
    async def open(cls, host: str, port: int, tls: ssl.SSLContext | None = None) -> Self:
        """Connect to the first address of a host that answers."""
        loop = asyncio.get_running_loop()
        # An IP address needs no race between addresses, whose tasks would be most of the work.
        delay = None if host[-1:].isdigit() or ":" in host else _HAPPY_EYEBALLS_S
        _, connection = await loop.create_connection(cls, host, port, ssl=tls, happy_eyeballs_delay=delay, interleave=1)
        return connection

    async def start_tls(self, tls: ssl.SSLContext, host: str) -> None:
        """Encrypt an open connection, such as a tunnel."""
        loop = asyncio.get_running_loop()
        transport = await loop.start_tls(self._open_transport(), self, tls, server_hostname=host)
        if not isinstance(transport, asyncio.Transport):
            raise ConnectionResetError("the connection was lost")
        self.connection_made(transport)

    @property
    def is_idle(self) -> bool:
        """Whether the connection is open and nothing unexpected has arrived on it."""
        transport = self._transport
        return not (self._received or self._is_ended or transport is None or transport.is_closing())

    def write(self, data: bytes) -> bool:
        """Write as much as the socket accepts; return whether that was everything, which needs no `flush`."""
        self._open_transport().write(data)
        return self._writable.is_set()

    async def flush(self) -> None:
        """Write the rest, as fast as the server reads."""
        await self._writable.wait()
        if self._error:
            raise self._error

    async def read(self) -> bytes:
        """Return the next bytes, as many as have arrived."""
        await self._readable.wait()
        data = bytes(self._received)
        if not data and self._error:
            raise self._error
        self._received.clear()
        if not self._is_ended:
            self._readable.clear()
        if self._is_paused and self._transport:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    async def close(self) -> None:
        """Close at once; may be called twice."""
        if self._transport is not None:
            self._transport.abort()
            await self._lost.wait()

    def abort(self) -> None:
        """Close without waiting, for code that was cancelled."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # Writing is done when the socket has accepted everything.
        transport.set_write_buffer_limits(0)

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._readable.set()
        if len(self._received) > _PAUSE_ABOVE_BYTES and not self._is_paused and self._transport:
            self._is_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        self._is_ended = True
        self._readable.set()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._is_ended = True
        self._error = error
        for event in (self._readable, self._writable, self._lost):
            event.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _open_transport(self) -> asyncio.Transport:
        if self._transport is None or self._transport.is_closing():
            raise self._error or ConnectionResetError("the connection was closed")
        return self._transport


def describe_error(error: Exception) -> str:
    """Return why a connection failed, without the address that asyncio repeats."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    number = getattr(error, "errno", None)
    if isinstance(number, int) and number > 0 and not isinstance(error, ssl.SSLError):
        return strerror(number)
    return getattr(error, "strerror", None) or str(error) or "the connection was lost"
