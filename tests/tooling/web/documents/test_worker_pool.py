"""The reading room: pages are read in processes of their own, and no page holds up anybody."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.tooling.web.sample_documents import pdf
from tooling.web.documents.read_document import RawDocument
from tooling.web.documents.worker_pool import WorkerPool

pytestmark = pytest.mark.slow


def raw_document(body: str | bytes, kind: str = "text/html") -> RawDocument:
    return RawDocument(
        body=body.encode() if isinstance(body, str) else body, content_type=kind, url="https://example.org/"
    )


async def test_pages_are_read_side_by_side_by_readers_that_stay() -> None:
    room = WorkerPool()
    room.warm_up()
    try:
        pages = [raw_document(f"<title>{n}</title><p>page number {n}, with a few words to read</p>") for n in range(8)]
        readings = await asyncio.gather(*map(room.read, pages))
        assert [f"number {n}," in reading.text for n, reading in enumerate(readings)] == [True] * 8
        assert (await room.read(raw_document(pdf("from a file"), "application/pdf"))).text.endswith("from a file")
        big = "line of text \u00e9\n" * 300_000
        assert (await room.read(raw_document(big, "text/plain"))).text == big.strip("\n")
    finally:
        await room.close()


async def test_a_reader_that_hangs_or_dies_is_replaced_and_the_page_read_as_plain_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trap = tmp_path / "trapped.py"
    trap.write_text(
        "import time, os, tooling.web.html.extract as e\n"
        "from tooling.web.documents.worker import main\n"
        "e.extract = lambda html, url='': os._exit(1) if 'die' in html else time.sleep(60)\n"
        "main()\n"
    )
    start = f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); exec(open({str(trap)!r}).read())"
    monkeypatch.setattr("tooling.web.documents.worker_pool._START", start)
    room = WorkerPool(patience_s=3)
    try:
        for word in ("die", "hang"):
            reading = await room.read(raw_document(f"<title>T</title><p>{word} here</p>"))
            assert (reading.method, reading.text, reading.title) == ("html", f"{word} here", "T")
    finally:
        await room.close()


async def test_a_room_that_was_never_used_or_is_cancelled_leaves_nobody_behind() -> None:
    await WorkerPool().close()
    room = WorkerPool()
    room.warm_up()
    await room.close()
    room = WorkerPool()
    task = asyncio.ensure_future(room.read(raw_document("<p>x</p>")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await room.close()


async def test_the_loop_goes_on_while_the_largest_page_is_read() -> None:
    room = WorkerPool()
    body = ("<p>many words in a paragraph that goes on</p>\n" * 110_000).encode()
    worst = 0.0

    async def tick() -> None:
        nonlocal worst
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            worst = max(worst, time.thread_time() - before)

    ticker = asyncio.ensure_future(tick())
    try:
        reading = await room.read(RawDocument(body=body, content_type="text/html"))
        assert len(reading.text) > 4_000_000
    finally:
        ticker.cancel()
        await room.close()
    # Processor time of this thread: what other programs take of the machine does not count.
    assert worst < 0.05
