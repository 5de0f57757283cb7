"""Relay of callbacks from a container to a loopback port of the host, through a socket in a shared folder.

The receiver then listens on loopback only, and the container can reach no other port.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from agent.backends.egress.proxy import bindable_path
from agent.backends.egress.stream import EgressLimits, Peer, pipe_both_ways
from agent.vocabulary.errors import InputError

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_PORTS = {"http": 80, "https": 443}
_LIMITS = EgressLimits()
Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect: TypeAlias = Callable[[], Awaitable[Streams]]


def loopback_port(url: str) -> int | None:
    """Return the port of a URL on this machine; None for any other URL. Raises InputError for an invalid URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError as error:
        raise InputError(f"{url!r} is not a URL") from error
    return port if parts.hostname in _LOOPBACK else None


class CallbackSocket:
    """The host side: forwards connections on the socket to a port of this machine."""

    def __init__(self, folder: Path, port: int, owner: tuple[int, int] | None) -> None:
        self._path = folder / _socket_name(port)
        self._port = port
        self._owner = owner
        self._server: asyncio.AbstractServer | None = None

    async def open(self) -> None:
        """Listen, replacing a socket left by a killed process."""
        self._path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            listening.bind(bindable_path(self._path.parent, folder, self._path.name))
            self._path.chmod(0o600)
            if self._owner:
                os.chown(self._path, *self._owner)
        except OSError:
            listening.close()
            raise
        finally:
            os.close(folder)
        serve = _relay(lambda: asyncio.open_connection("127.0.0.1", self._port))
        self._server = await asyncio.start_unix_server(serve, sock=listening)

    async def close(self) -> None:
        """Stop listening."""
        if self._server:
            self._server.close()
            self._path.unlink(missing_ok=True)


class CallbackRelay:
    """The container side: the receiver's port on the container's loopback, forwarded to the socket."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._servers: dict[int, asyncio.AbstractServer] = {}

    async def open(self, url: str) -> None:
        """Make a URL of this machine reachable. Raises InputError if its port is in use."""
        port = loopback_port(url) if url and self._folder else None
        if port is None or port in self._servers or self._folder is None:
            return
        path = self._folder / _socket_name(port)
        if not path.exists():
            problem = f"callbacks do not reach port {port} of the machine outside"
            raise InputError(problem, "use the address of callback_base_url, or one that is not on that machine")
        try:
            self._servers[port] = await asyncio.start_server(
                _relay(lambda: asyncio.open_unix_connection(path)), "127.0.0.1", port
            )
        except OSError as error:
            raise InputError(f"callbacks cannot be sent to port {port}: {error.strerror}") from error

    async def close(self) -> None:
        """Stop listening."""
        for server in self._servers.values():
            server.close()


def _socket_name(port: int) -> str:
    return f"callback-{port}.sock"


def _relay(connect: Connect) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Peer(reader, writer)
        try:
            server = Peer(*await connect())
        except OSError:
            client.abort()
            return
        try:
            with contextlib.suppress(OSError, TimeoutError):
                await pipe_both_ways(client, server, _LIMITS)
        finally:
            client.abort()
            server.abort()

    return serve
