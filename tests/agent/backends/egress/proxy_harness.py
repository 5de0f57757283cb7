"""Both sides of the egress proxy: servers on loopback, and clients on its socket."""

import asyncio
import shutil
import socket
import ssl
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from agent.backends.egress.host_rules import EgressRules
from agent.backends.egress.proxy import EgressProxy
from agent.backends.egress.proxy_connection import Connect
from agent.backends.egress.stream import EgressLimits
from tests.programs import require
from tooling.web.addresses.url_check import Resolver
from tooling.web.network_attempt import NetworkAttempt

PUBLIC = "93.184.216.34"
HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
SHORT_LIMITS = EgressLimits(
    head_bytes=4096, head_s=0.2, connect_s=0.3, idle_s=0.3, half_open_s=0.1, total_s=5, connections=4
)

Handler: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """A server on loopback that records request heads; the default handler answers HELLO and closes."""

    def __init__(self, handler: Handler | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._handler = handler or self._greet
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self.heads: list[bytes] = []
        self.port = 0

    async def __aenter__(self) -> "Server":
        self._server = await asyncio.start_server(self._on_connection, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # Clients disconnect and tests end; neither is an error of the server.
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(HELLO)
        await writer.drain()


class ProxyHarness:
    """A running proxy, the attempts it reported, and clients for it."""

    def __init__(self, proxy: EgressProxy, path: Path, attempts: list[NetworkAttempt]) -> None:
        self.proxy = proxy
        self.socket = path
        self.attempts = attempts

    @property
    def decisions(self) -> list[tuple[str, int, bool]]:
        return [(attempt.host, attempt.port, attempt.allowed) for attempt in self.attempts]

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(self.socket)

    async def exchange(self, *parts: bytes) -> bytes:
        """Send bytes and return everything received until the proxy closes."""
        async with asyncio.timeout(10):
            reader, writer = await self.open()
            try:
                for part in parts:
                    writer.write(part)
                    await writer.drain()
                return await reader.read()
            except ConnectionError:
                return b""
            finally:
                writer.close()

    async def status(self, *parts: bytes) -> int:
        answer = await self.exchange(*parts)
        return int(answer.split(b" ", 2)[1]) if answer else 0


def connect(target: str) -> bytes:
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()


def get(url: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {url} HTTP/1.1", *headers, "", ""]).encode("latin-1")


def fake_resolver(**hosts: str) -> Resolver:
    """Return a resolver that only knows the given hosts; an underscore in a name is a dot."""
    known = {name.replace("_", "."): address for name, address in hosts.items()}

    async def resolve(host: str, port: int) -> Sequence[str]:
        if host not in known:
            raise OSError(f"{host} is not known here")
        return [known[host]]

    return resolve


@asynccontextmanager
async def run_proxy(
    *,
    allow: Sequence[str] = ("example.test",),
    deny: Sequence[str] = (),
    ports: Sequence[int] = (),
    resolver: Resolver | None = None,
    connect: Connect = asyncio.open_connection,
    limits: EgressLimits | None = None,
    allow_loopback: bool = True,
) -> AsyncIterator[ProxyHarness]:
    """Run a proxy whose names resolve to loopback; tunnels and plain requests may use the given ports."""
    attempts: list[NetworkAttempt] = []
    rules = EgressRules(allow=tuple(allow), deny=tuple(deny))
    if ports:
        opened = frozenset(ports)
        rules = EgressRules(allow=tuple(allow), deny=tuple(deny), tunnel_ports=opened, plain_ports=opened)
    proxy = EgressProxy(
        rules,
        attempts.append,
        resolver=resolver or fake_resolver(example_test="127.0.0.1", www_example_test="127.0.0.1"),
        connect=connect,
        limits=limits,
        allow_loopback=allow_loopback,
    )
    # The paths of pytest's folders are too long for a unix socket.
    folder = Path(tempfile.mkdtemp(prefix="wl-"))
    try:
        yield ProxyHarness(proxy, await proxy.start(folder), attempts)
    finally:
        await proxy.close()
        shutil.rmtree(folder)


def free_port() -> int:
    """Return an unused port on loopback."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def certificate(folder: Path, host: str) -> tuple[Path, ssl.SSLContext]:
    """Create a certificate for one host; return its file and the server's context."""
    require("openssl")
    file, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"),
            *("-keyout", str(key), "-out", str(file)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    return file, context
