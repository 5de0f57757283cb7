"""The worker pool: documents are parsed in worker processes, and none blocks the others."""

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


async def test_documents_are_parsed_in_parallel_by_reused_workers() -> None:
    pool = WorkerPool()
    pool.warm_up()
    try:
        pages = [raw_document(f"<title>{n}</title><p>page number {n}, with a few words to read</p>") for n in range(8)]
        documents = await asyncio.gather(*map(pool.read, pages))
        assert [f"number {n}," in document.text for n, document in enumerate(documents)] == [True] * 8
        assert (await pool.read(raw_document(pdf("from a file"), "application/pdf"))).text.endswith("from a file")
        big = "line of text \u00e9\n" * 300_000
        assert (await pool.read(raw_document(big, "text/plain"))).text == big.strip("\n")
    finally:
        await pool.close()


async def test_a_hung_or_crashed_worker_is_replaced_and_the_page_read_as_plain_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "broken_worker.py"
    script.write_text(
        "import time, os, tooling.web.html.extract as e\n"
        "from tooling.web.documents.worker import main\n"
        "e.extract = lambda html, url='': os._exit(1) if 'die' in html else time.sleep(60)\n"
        "main()\n"
    )
    start = f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); exec(open({str(script)!r}).read())"
    monkeypatch.setattr("tooling.web.documents.worker_pool._START", start)
    pool = WorkerPool(timeout_s=3)
    try:
        for word in ("die", "hang"):
            document = await pool.read(raw_document(f"<title>T</title><p>{word} here</p>"))
            assert (document.method, document.text, document.title) == ("html", f"{word} here", "T")
    finally:
        await pool.close()


async def test_an_unused_or_cancelled_pool_leaves_no_workers() -> None:
    await WorkerPool().close()
    pool = WorkerPool()
    pool.warm_up()
    await pool.close()
    pool = WorkerPool()
    task = asyncio.ensure_future(pool.read(raw_document("<p>x</p>")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await pool.close()


async def test_parsing_the_largest_page_does_not_block_the_loop() -> None:
    pool = WorkerPool()
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
        document = await pool.read(RawDocument(body=body, content_type="text/html"))
        assert len(document.text) > 4_000_000
    finally:
        ticker.cancel()
        await pool.close()
    # CPU time of this thread, so that other programs do not count.
    assert worst < 0.05
