"""What the worst pages cost: 50 megabytes, ten gigabytes in a bomb, and no end at all."""

import json
import subprocess
import sys
import zlib

import pytest

from tests.house.source_tree import ROOT
from tests.tooling.web.site import ReceivedRequest, Send, SiteResponse, http_response, response_head
from tests.tooling.web.threaded_site import serve_in_thread

pytestmark = pytest.mark.slow

MOST_KB = 60_000
WARM = http_response(
    "<title>T</title><article><p>A page with a few words, so that everybody has come and sits down.</p></article>"
)


async def large(visit: ReceivedRequest, send: Send) -> None:
    piece = b"<p>One of many paragraphs, all of them alike, in a page that goes on and on.</p>\n" * 800
    await send(response_head("Content-Type: text/html", f"Content-Length: {len(piece) * 780}"))
    for _ in range(780):
        await send(piece)


async def bomb(visit: ReceivedRequest, send: Send) -> None:
    packer = zlib.compressobj(9, wbits=31)
    first = packer.compress(b"\0" * 10_000_000) + packer.flush(zlib.Z_FULL_FLUSH)
    more = packer.compress(b"\0" * 10_000_000) + packer.flush(zlib.Z_FULL_FLUSH)
    await send(response_head("Content-Type: text/html", "Content-Encoding: gzip") + first)
    for _ in range(999):
        await send(more)


async def endless(visit: ReceivedRequest, send: Send) -> None:
    await send(response_head("Content-Type: text/plain"))
    while True:
        await send("für immer und ewig\n".encode() * 2000)


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (large, "ok", "larger than may be loaded"),
        (bomb, "error", "unpacks to more than 5000000 bytes"),
        (endless, "ok", "larger than may be loaded"),
    ],
)
def test_the_worst_pages_stay_small(answer: SiteResponse, status: str, words: str) -> None:
    with serve_in_thread({"/warm": WARM, "/": answer}) as site:
        ended = subprocess.run(
            [sys.executable, "-m", "tests.tooling.web.memory_probe", site.url("/warm"), site.url("/")],
            capture_output=True,
            cwd=ROOT,
            timeout=120,
            check=True,
        )
    told = json.loads(ended.stdout)
    print({name: told[name] for name in ("own_kb", "readers_kb")})
    assert told["status"] == status, told["content"][:500]
    assert words in told["content"]
    # Its own, and together with the processes that read.
    assert told["own_kb"] + told["readers_kb"] < MOST_KB
