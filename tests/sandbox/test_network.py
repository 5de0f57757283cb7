"""The one way out of the box: the socket of the proxy, through the relay in front of every command."""

import asyncio
from pathlib import Path

import pytest

from agent.backends.sandbox.runner import build_sandbox_runner
from agent.vocabulary.errors import SandboxError
from tests.agent.backends.backend_cases import ENVIRON
from tooling.contract.command import CommandRequest

pytestmark = pytest.mark.slow


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a proxy does, with the line it was asked."""
    asked = (await reader.readline()).decode().split()[1]
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(asked)}\r\nConnection: close\r\n\r\n{asked}".encode())
    await writer.drain()
    writer.close()


async def test_commands_reach_the_proxy_once_it_is_open_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    runner = build_sandbox_runner(workspace=tmp_path / "ws", environ=ENVIRON)
    curl = CommandRequest(
        argv=("bash", "-c", "curl -sS -m 5 http://example.org/a; (exec 3<>/dev/tcp/127.0.0.1/$0) && echo out", "1"),
        cwd=tmp_path / "ws",
        timeout_s=20,
    )
    closed = await runner.run(curl)
    assert b"example.org" in closed.output
    assert b"http://" not in closed.output
    server = await asyncio.start_unix_server(answer, tmp_path / "proxy.sock")
    async with server:
        runner.open_network(tmp_path / "proxy.sock")
        opened = await runner.run(curl)
    assert opened.output.startswith(b"http://example.org/a")
    assert b"out" not in opened.output.splitlines()


async def test_landlock_has_no_way_out_and_says_so(tmp_path: Path) -> None:
    runner = build_sandbox_runner(workspace=tmp_path, environ=ENVIRON)
    runner.use_landlock()
    with pytest.raises(SandboxError, match="allowed hosts need bubblewrap"):
        runner.open_network(tmp_path / "proxy.sock")
