"""Servers that behave: built with the SDK, over stdin and stdout or HTTP, and two that others have published."""

import asyncio
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tooling.mcp.mcp_harness import SERVERS, McpHarness, call, find, ordinary
from tooling.contract.result import ToolError
from tooling.mcp.connection import ServerConnection
from tooling.mcp.servers import parse_server

pytestmark = pytest.mark.slow


async def test_a_server_of_the_sdk_offers_tools_resources_and_prompts(harness: McpHarness) -> None:
    toolset = await harness.learn(ordinary())
    assert [tool.spec.name for tool in toolset.tools] == [
        *(f"mcp__notes__{name}" for name in ("add", "environment", "write_note", "count", "greet", "read_resource")),
    ]
    assert ">\n42\n<" in (await call(harness, find(toolset, "mcp__notes__add"), a=2, b=40)).content
    assert "buy milk" in (await call(harness, find(toolset, "mcp__notes__read_resource"), uri="notes://today")).content
    text = await harness.connections[-1].use(harness.ctx, lambda client: client.get_prompt("review", {"topic": "tea"}))
    assert text == "Review this: tea"


async def test_only_allowed_tools_are_used(harness: McpHarness) -> None:
    toolset = await harness.learn(ordinary(tools=["add"]))
    assert [tool.spec.name for tool in toolset.tools] == ["mcp__notes__add"]


async def test_wrong_arguments_come_back_as_an_error_of_the_server(harness: McpHarness) -> None:
    result = await call(harness, find(await harness.learn(ordinary()), "mcp__notes__add"), a="x")
    assert (result.is_ok, result.exit_code) == (False, 1)


async def test_progress_is_reported_while_the_call_runs(harness: McpHarness) -> None:
    from dataclasses import replace

    seen: list[bytes] = []
    tool = find(await harness.learn(ordinary()), "mcp__notes__count")
    await tool.run({"to": 3}, replace(harness.ctx, on_output=seen.append))
    assert b"".join(seen).splitlines()[-1] == b"3 of 3 counting"


@pytest.fixture(params=["open", "login"])
def http_server(request: pytest.FixtureRequest) -> Iterator[str]:
    program = subprocess.Popen(
        [sys.executable, str(SERVERS / "over_http.py"), request.param], stdout=subprocess.PIPE, text=True
    )
    try:
        assert program.stdout is not None
        yield program.stdout.readline().strip()
    finally:
        program.kill()
        program.communicate()


class Browser:
    """A user who logs in at once."""

    def __init__(self) -> None:
        self.visits: list[str] = []

    async def show(self, url: str) -> None:
        self.visits.append(url)
        await asyncio.to_thread(lambda: urllib.request.urlopen(url).read())


async def test_a_server_over_http_is_used_after_a_login_if_it_needs_one(harness: McpHarness, http_server: str) -> None:
    from dataclasses import replace

    server = parse_server("web", {"url": http_server, "start_timeout_ms": 60_000, "timeout_ms": 60_000})
    browser = Browser()
    connection = ServerConnection(server, replace(harness.host, login=browser), harness.store)
    try:
        listing = await connection.refresh(harness.ctx)
    finally:
        await connection.close()
    assert [tool.name for tool in listing.tools] == ["ping"]
    # The next run needs no login.
    assert ">\npong\n<" in (await call(harness, find(harness.open(server), "mcp__web__ping"))).content
    tokens = harness.folder / "mcp" / "tokens" / "web.json"
    assert (len(browser.visits), tokens.exists()) in ((0, False), (1, True))
    assert not tokens.exists() or tokens.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("http_server", ["login"], indirect=True)
async def test_without_a_login_a_run_says_how_to_log_in(harness: McpHarness, http_server: str) -> None:
    server = parse_server("web", {"url": http_server, "start_timeout_ms": 60_000})
    with pytest.raises(ToolError, match="it needs a login; run `agent mcp test web`"):
        await harness.learn(server)


async def test_a_server_that_is_not_there_is_an_error(harness: McpHarness) -> None:
    with pytest.raises(ToolError, match="The MCP server web could not be started"):
        await harness.learn(parse_server("web", {"url": "http://127.0.0.1:9/mcp"}))


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=600)


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two servers from the package index, in an environment of their own: they need an older SDK."""
    folder = tmp_path_factory.mktemp("published") / "venv"
    python = str(folder / "bin" / "python")
    packages = ("mcp-server-time", "mcp-server-git")
    try:
        try:
            _run("uv", "venv", "-q", str(folder))
            _run("uv", "pip", "install", "-q", "--python", python, *packages)
        except FileNotFoundError:
            # Without uv it takes minutes.
            _run(sys.executable, "-m", "venv", str(folder))
            _run(python, "-m", "pip", "install", "-q", "--no-compile", *packages)
    except (subprocess.SubprocessError, OSError) as problem:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the package index cannot be reached: {problem}")
    return folder / "bin"


async def test_a_published_server_tells_the_time(harness: McpHarness, published: Path) -> None:
    command = {"command": str(published / "mcp-server-time"), "args": ["--local-timezone", "Europe/Berlin"]}
    toolset = await harness.learn(parse_server("time", {**command, "start_timeout_ms": 60_000}))
    result = await call(harness, find(toolset, "mcp__time__get_current_time"), timezone="UTC")
    assert '"timezone": "UTC"' in result.content


async def test_a_published_server_reads_a_repository(harness: McpHarness, published: Path) -> None:
    git = await asyncio.create_subprocess_exec("git", "init", "-q", str(harness.folder / "repo"))
    await git.wait()
    (harness.folder / "repo" / "new.txt").touch()
    server = parse_server("git", {"command": str(published / "mcp-server-git"), "start_timeout_ms": 60_000})
    toolset = await harness.learn(server)
    result = await call(harness, find(toolset, "mcp__git__git_status"), repo_path=str(harness.folder / "repo"))
    assert "new.txt" in result.content
