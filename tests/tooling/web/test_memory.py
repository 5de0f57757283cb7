"""Peak memory of hostile pages: 50 megabytes, a bomb of ten gigabytes, and an endless page."""

import json
import subprocess
import sys
import zlib

import pytest

from tests.house.source_tree import ROOT
from tests.tooling.web.site import Send, SiteRequest, SiteResponse, http_response, response_head
from tests.tooling.web.threaded_site import serve_in_thread
from tooling.web.page import TOO_LARGE

pytestmark = pytest.mark.slow

MAX_KB = 60_000
WARM_UP = http_response(
    "<title>T</title><article><p>A page with a few words, so that every module is imported.</p></article>"
)


async def large(request: SiteRequest, send: Send) -> None:
    piece = b"<p>One of many paragraphs, all of them alike, in a page that goes on and on.</p>\n" * 800
    await send(response_head("Content-Type: text/html", f"Content-Length: {len(piece) * 780}"))
    for _ in range(780):
        await send(piece)


async def bomb(request: SiteRequest, send: Send) -> None:
    compressor = zlib.compressobj(9, wbits=31)
    first = compressor.compress(b"\0" * 10_000_000) + compressor.flush(zlib.Z_FULL_FLUSH)
    more = compressor.compress(b"\0" * 10_000_000) + compressor.flush(zlib.Z_FULL_FLUSH)
    await send(response_head("Content-Type: text/html", "Content-Encoding: gzip") + first)
    for _ in range(999):
        await send(more)


async def endless(request: SiteRequest, send: Send) -> None:
    await send(response_head("Content-Type: text/plain"))
    while True:
        await send("für immer und ewig\n".encode() * 2000)


@pytest.mark.parametrize(
    ("response", "status", "message"),
    [
        (large, "ok", TOO_LARGE),
        (bomb, "error", "more than 5000000 bytes"),
        (endless, "ok", TOO_LARGE),
    ],
)
def test_hostile_pages_stay_within_the_memory_limit(response: SiteResponse, status: str, message: str) -> None:
    with serve_in_thread({"/warm": WARM_UP, "/": response}) as site:
        finished = subprocess.run(
            [sys.executable, "-m", "tests.tooling.web.memory_probe", site.url("/warm"), site.url("/")],
            capture_output=True,
            cwd=ROOT,
            timeout=120,
            check=True,
        )
    report = json.loads(finished.stdout)
    print({name: report[name] for name in ("own_kb", "workers_kb")})
    assert report["status"] == status, report["content"][:500]
    assert message in report["content"]
    assert report["own_kb"] + report["workers_kb"] < MAX_KB
