"""The network of the sandbox: the socket of the proxy, through the relay in front of every command."""

import asyncio
from pathlib import Path

import pytest

from agent.backends.sandbox.runner import ALLOWED_HOSTS_NEED_BUBBLEWRAP
from agent.vocabulary.errors import SandboxError
from tests.agent.backends.backend_cases import BuildRunner
from tests.programs import needs
from tooling.contract.command import CommandRequest

pytestmark = pytest.mark.slow


async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Respond like a proxy, with the requested URL."""
    url = (await reader.readline()).decode().split()[1]
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(url)}\r\nConnection: close\r\n\r\n{url}".encode())
    await writer.drain()
    writer.close()


@needs("bwrap", "curl")
async def test_commands_reach_nothing_but_the_open_proxy(tmp_path: Path, build_runner: BuildRunner) -> None:
    (tmp_path / "ws").mkdir()
    runner = build_runner(tmp_path / "ws")
    curl = CommandRequest(
        argv=("bash", "-c", "curl -sS -m 5 http://example.org/a; (exec 3<>/dev/tcp/127.0.0.1/$0) && echo out", "1"),
        cwd=tmp_path / "ws",
        timeout_s=20,
    )
    closed = await runner.run(curl)
    assert b"example.org" in closed.output
    assert b"http://" not in closed.output
    server = await asyncio.start_unix_server(respond, tmp_path / "proxy.sock")
    async with server:
        runner.open_network(tmp_path / "proxy.sock")
        opened = await runner.run(curl)
    assert opened.output.startswith(b"http://example.org/a")
    assert b"out" not in opened.output.splitlines()


async def test_landlock_refuses_to_open_the_network(tmp_path: Path, build_runner: BuildRunner) -> None:
    runner = build_runner(tmp_path, "landlock")
    with pytest.raises(SandboxError, match=ALLOWED_HOSTS_NEED_BUBBLEWRAP):
        runner.open_network(tmp_path / "proxy.sock")
