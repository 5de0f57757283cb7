"""What checked addresses, limits and reading cost: 32 pages of a megabyte side by side, against bare httpx."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from bench.measure import BenchResult, ratio, sample_interleaved
from tests.tooling.tool_harness import ToolHarness
from tests.tooling.web.isolated_process import serve_in_process
from tests.tooling.web.site import http_response
from tooling.approvals.policy import PolicyApprover
from tooling.web.http.messages import WebRequest
from tooling.web.http.web_client import WebClient
from tooling.web.session import WebSession
from tooling.web.settings import WebSettings

PAGES = 32
ROUNDS = 10
MEGABYTE = 1_000_000
LINE = "A line of a page that is a megabyte long, with words in it and a number: {:07}.\n"
SETTINGS = WebSettings(allow_loopback=True)


def web() -> list[BenchResult]:
    """Measure the client alone, and the tool with all it does to a text, against bare httpx."""
    text = "".join(LINE.format(n) for n in range(MEGABYTE // len(LINE) + 200))
    pages = {"*": http_response(text, kind="text/plain; charset=utf-8")}
    with serve_in_process(pages) as base, tempfile.TemporaryDirectory() as name, asyncio.Runner() as loop:
        urls = [f"{base}/{n}" for n in range(PAGES)]

        def timed(deed: Callable[[], Awaitable[int]]) -> Callable[[], float]:
            def measured() -> float:
                began = time.perf_counter()
                size = loop.run(_awaited(deed))
                assert size >= PAGES, "a page is missing"
                return time.perf_counter() - began

            return measured

        work = ToolHarness(Path(name), approver=PolicyApprover(mode="yolo"), web=WebSession(SETTINGS))
        ours, tool, floor = sample_interleaved(
            ROUNDS,
            timed(lambda: _by_client(urls)),
            timed(lambda: _by_tool(urls, work)),
            timed(lambda: _by_httpx(urls)),
        )
        loop.run(work.executor.close())
    return [
        ratio("32 pages of 1 MB by the web client against a bare httpx gather", 1.5, ours, floor),
        ratio("the same by `fetch_page`, each kept whole and masked", 4.0, tool, floor),
    ]


async def _awaited(deed: Callable[[], Awaitable[int]]) -> int:
    return await deed()


async def _by_httpx(urls: list[str]) -> int:
    async with httpx.AsyncClient() as client:
        answers = await asyncio.gather(*map(client.get, urls))
    return sum(len(answer.content) >= MEGABYTE for answer in answers)


async def _by_client(urls: list[str]) -> int:
    client = WebClient(SETTINGS)
    try:
        answers = await asyncio.gather(*(client.send(WebRequest(url=url)) for url in urls))
    finally:
        await client.close()
    return sum(len(answer.body) >= MEGABYTE for answer in answers)


async def _by_tool(urls: list[str], work: ToolHarness) -> int:
    results = await asyncio.gather(*(work.call("fetch_page", url=url) for url in urls))
    return sum(result.is_ok and "continue with offset" in result.content for result in results)
