"""The `harness` fixture: a run with MCP servers, all of which are gone at the end."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.tooling.mcp.mcp_harness import McpHarness


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[McpHarness]:
    opened = McpHarness(folder=tmp_path)
    yield opened
    await opened.close()
