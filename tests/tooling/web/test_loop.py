"""Fetching, parsing and caching pages never blocks the event loop for long."""

import asyncio
import tempfile
import time
from pathlib import Path

import pytest

from tests.tooling.tool_harness import ToolHarness
from tests.tooling.web.isolated_process import serve_in_process
from tests.tooling.web.site import http_response
from tooling.approvals.policy import PolicyApprover
from tooling.web.session import WebSession
from tooling.web.settings import WebSettings

pytestmark = pytest.mark.slow

LONGEST_STALL_S = 0.05
ATTEMPTS = 8
PARAGRAPH = (
    "<p>The <b>quick</b> brown fox jumps over <a href='/x'>the lazy dog</a> and writes a sentence about it.</p>\n"
)
PAGES = {
    "/article": http_response(f"<title>T</title><article>{PARAGRAPH * 200}</article>"),
    "/megabyte": http_response(f"<title>T</title><article>{PARAGRAPH * 9_000}</article>"),
    "/huge": http_response(PARAGRAPH * 60_000),
    "/text": http_response("a line of words, für alle\n" * 180_000, kind="text/plain; charset=utf-8"),
    "/json": http_response('{"key": [1, 2, "words"]},' * 40_000, kind="application/json"),
}


async def longest_stall(url: str, query: str) -> float:
    """Fetch with a new session, as for the first page of a run, and return the longest stall of the loop."""
    worst = 0.0

    async def tick() -> None:
        nonlocal worst
        while True:
            # What the loop itself has done: how long it waited for a processor says more about the machine.
            before = time.thread_time()
            await asyncio.sleep(0.001)
            worst = max(worst, time.thread_time() - before)

    with tempfile.TemporaryDirectory() as folder:
        tools = ToolHarness(
            Path(folder), approver=PolicyApprover(mode="yolo"), web=WebSession(WebSettings(allow_loopback=True))
        )
        ticker = asyncio.ensure_future(tick())
        result = await tools.call("fetch_page", url=url, query=query)
        ticker.cancel()
        assert result.is_ok, result.content
        await tools.executor.close()
    return worst


@pytest.mark.parametrize("path", list(PAGES))
@pytest.mark.parametrize("query", ["", "the dog that is lazy"])
def test_fetching_never_blocks_the_loop_for_long(path: str, query: str) -> None:
    stalls: list[float] = []
    with serve_in_process(PAGES) as base:
        # The first one imports modules, and caches are cold; a stall of our own would occur every time.
        while len(stalls) < ATTEMPTS and min(stalls, default=1.0) >= LONGEST_STALL_S:
            stalls.append(asyncio.run(longest_stall(f"{base}{path}", query)))
    assert min(stalls) < LONGEST_STALL_S, stalls
