"""The egress proxy: forwards connections from the sandbox to allowed hosts, and reports every attempt."""

import asyncio
import contextlib
import os
import socket
import stat
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

from agent.backends.egress.host_rules import EgressRules
from agent.backends.egress.proxy_connection import Connect, ProxyConfig, ProxyConnection
from agent.backends.egress.proxy_http import ProxyHttpError
from agent.backends.egress.stream import EgressLimits, Peer
from tooling.web.addresses.url_check import Resolver
from tooling.web.network_attempt import OnAttempt

SOCKET_NAME = "proxy.sock"
# Linux limits the path of a socket to 108 bytes, other systems to slightly less.
MAX_SOCKET_PATH_BYTES = 100
BACKLOG = 128
ACCEPT_PAUSE_S = 0.1


class EgressProxy:
    """A proxy on a unix socket, for CONNECT to TLS servers and plain http requests; hosts are given by name only."""

    def __init__(
        self,
        rules: EgressRules,
        on_attempt: OnAttempt,
        *,
        resolver: Resolver | None = None,
        connect: Connect = asyncio.open_connection,
        limits: EgressLimits | None = None,
        allow_loopback: bool = False,
    ) -> None:
        self._config = ProxyConfig(
            rules=rules,
            resolver=resolver,
            connect=connect,
            allow_loopback=allow_loopback,
            limits=limits or EgressLimits(),
        )
        self._on_attempt = on_attempt
        self._listening: socket.socket | None = None
        self._path: Path | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def rules(self) -> EgressRules:
        """The current rules."""
        return self._config.rules

    def allow(self, rule: str) -> None:
        """Allow one more host or suffix; a denied one stays denied."""
        self._config = replace(self._config, rules=self.rules.with_allowed(rule))

    def set_rules(self, rules: EgressRules) -> None:
        """Replace all rules; open connections stay."""
        self._config = replace(self._config, rules=rules)

    async def start(self, folder: Path) -> Path:
        """Listen in a private folder, created if missing; return the socket to mount into the sandbox."""
        self._listening = _listening_socket(folder)
        self._path = folder / SOCKET_NAME
        self._listen()
        return self._path

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._listening is None or self._path is None:
            return
        asyncio.get_running_loop().remove_reader(self._listening)
        self._listening.close()
        self._listening = None
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._path.unlink(missing_ok=True)

    # asyncio's own server loses track of a connection that it accepts while it is closed; this one does not.
    def _listen(self) -> None:
        if self._listening is not None:
            asyncio.get_running_loop().add_reader(self._listening, self._accept, self._listening)

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            connection, _ = listening.accept()
        except BlockingIOError:
            return
        except OSError:
            # Probably out of file descriptors; pending clients keep waiting.
            loop.remove_reader(listening)
            loop.call_later(ACCEPT_PAUSE_S, self._listen)
            return
        task = loop.create_task(self._serve(connection))
        self._connections.add(task)
        task.add_done_callback(lambda done: self._on_done(done, connection))

    async def _serve(self, connection: socket.socket) -> None:
        limits = self._config.limits
        client = Peer(*await asyncio.open_unix_connection(sock=connection, limit=limits.head_bytes))
        proxied = ProxyConnection(client, self._config, self._on_attempt)
        try:
            if len(self._connections) > limits.connections:
                await proxied.refuse(ProxyHttpError(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections"))
            else:
                await proxied.run()
        finally:
            client.abort()

    def _on_done(self, task: asyncio.Task[None], connection: socket.socket) -> None:
        self._connections.discard(task)
        # Needed if the task was cancelled before it started.
        connection.close()


def _listening_socket(folder: Path) -> socket.socket:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(folder_fd)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(f"{folder} is not private to this user")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET_NAME, dir_fd=folder_fd)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.setblocking(False)
        try:
            listening.bind(bindable_path(folder, folder_fd))
            os.chmod(SOCKET_NAME, 0o600, dir_fd=folder_fd)
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
        return listening
    finally:
        os.close(folder_fd)


def bindable_path(folder: Path, folder_fd: int, name: str = SOCKET_NAME) -> str:
    """Return a path of the socket that is short enough for the kernel, if necessary through the open folder."""
    path = str(folder / name)
    return path if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES else f"/proc/self/fd/{folder_fd}/{name}"
