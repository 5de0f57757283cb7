"""The only way out of the box: a proxy on a unix socket that lets allowed names through and tells of every attempt."""

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

from agent.backends.egress_rules import EgressRules
from agent.backends.egress_stream import EgressLimits, Peer
from agent.backends.egress_visit import Attempt, Connect, Visit, WayOut
from agent.backends.egress_wire import WireFault
from tooling.web.address import Resolver

SOCKET_NAME = "proxy.sock"
# The kernel has room for 108 bytes of a socket's name; other systems have a little less.
MOST_SOCKET_PATH_BYTES = 100


class EgressProxy:
    """Listens for the box: CONNECT to TLS servers and plain http requests, by name and by the rules only."""

    def __init__(
        self,
        rules: EgressRules,
        on_attempt: Callable[[Attempt], None],
        *,
        resolver: Resolver | None = None,
        connect: Connect = asyncio.open_connection,
        limits: EgressLimits | None = None,
        allow_loopback: bool = False,
    ) -> None:
        self._way_out = WayOut(
            rules=rules,
            resolver=resolver,
            connect=connect,
            allow_loopback=allow_loopback,
            limits=limits or EgressLimits(),
        )
        self._on_attempt = on_attempt
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._visits: set[asyncio.Task[None]] = set()

    @property
    def rules(self) -> EgressRules:
        """Return the rules as they are now."""
        return self._way_out.rules

    def allow(self, rule: str) -> None:
        """Let one more host or suffix through from now on; a denied one stays denied."""
        self._way_out = replace(self._way_out, rules=self.rules.with_allowed(rule))

    async def start(self, folder: Path) -> Path:
        """Listen in a private folder, made when missing, and return the socket to mount into the box."""
        listening = _listening_socket(folder)
        self._path = folder / SOCKET_NAME
        self._server = await asyncio.start_unix_server(
            self._visited, sock=listening, limit=self._way_out.limits.head_bytes
        )
        return self._path

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._server is None or self._path is None:
            return
        self._server.close()
        visits = tuple(self._visits)
        for visit in visits:
            visit.cancel()
        await asyncio.gather(*visits, return_exceptions=True)
        await self._server.wait_closed()
        self._path.unlink(missing_ok=True)
        self._server = self._path = None

    async def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._visits.add(task)
        visit = Visit(client := Peer(reader, writer), self._way_out, self._on_attempt)
        try:
            if len(self._visits) > self._way_out.limits.connections:
                await visit.refuse(WireFault(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections at the same time"))
            else:
                await visit.run()
        finally:
            client.drop()
            self._visits.discard(task)


def _listening_socket(folder: Path) -> socket.socket:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(here)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(f"{folder} is not private to this user")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET_NAME, dir_fd=here)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(_bindable(folder, here))
            os.chmod(SOCKET_NAME, 0o600, dir_fd=here)
        except OSError:
            listening.close()
            raise
        return listening
    finally:
        os.close(here)


def _bindable(folder: Path, here: int) -> str:
    """Return a name of the socket that is short enough for the kernel, through the open folder if need be."""
    path = str(folder / SOCKET_NAME)
    return path if len(os.fsencode(path)) <= MOST_SOCKET_PATH_BYTES else f"/proc/self/fd/{here}/{SOCKET_NAME}"
