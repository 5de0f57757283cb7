"""Where pages are read without holding up anybody: a few processes of our own, each with a page at a time.

A parser of pages from strangers is the likeliest part of all to hang, to grow or to crash, and while it works it lets
nobody else in. In a process of its own it can be ended at any time, and the loop never waits for it.
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import replace

from tooling.contract.json_codec import decode
from tooling.web.documents.read_document import ParsedDocument, RawDocument, ReadMode
from tooling.web.passages import Passage

JOB_TIMEOUT_S = 15.0
MAX_WORKERS = 4
# Larger pieces would be copied over and over while the pipe takes them in.
_CHUNK_BYTES = 65_536
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from tooling.web.documents.worker import main; main()"
)


class WorkerPool:
    """Reads answers side by side; readers stay for the next page and leave with the run."""

    def __init__(self, *, patience_s: float = JOB_TIMEOUT_S) -> None:
        self._timeout_s = patience_s
        self._slots = asyncio.Semaphore(max(1, min(MAX_WORKERS, os.cpu_count() or 1)))
        self._idle: list[asyncio.subprocess.Process] = []
        self._workers: set[asyncio.subprocess.Process] = set()
        self._starting: asyncio.Future[asyncio.subprocess.Process] | None = None

    def warm_up(self) -> None:
        """Start the first reader while its page is still on the way: it takes as long to come."""
        if not self._workers and self._starting is None:
            self._starting = asyncio.ensure_future(self._start_worker())

    async def read(self, answer: RawDocument) -> ParsedDocument:
        """Return the text of an answer; a page that no reader can finish is read as plain text."""
        ways: tuple[ReadMode, ...] = ("auto", "text", "raw") if answer.mode == "auto" else (answer.mode,)
        about = {"content_type": answer.content_type, "url": answer.url, "is_cut": answer.is_cut}
        for way in ways:
            found = await self._run_job({"job": "read", **about, "way": way}, answer.body)
            if found is not None:
                head, text = found
                return replace(decode(ParsedDocument, head, extra="ignore"), text=text.decode("utf-8", "replace"))
        return ParsedDocument(problem="nothing could read it in time")

    async def passages(self, query: str, text: str, most_chars: int) -> list[Passage]:
        """Return the passages of a text that fit a query; of one that takes too long, none."""
        head = {"job": "passages", "query": query, "most_chars": most_chars}
        found = await self._run_job(head, text.encode("utf-8", "replace"))
        places = found[0].get("passages") if found else None
        if not isinstance(places, list):
            return []
        return [decode(Passage, place, extra="ignore") for place in places]

    async def close(self) -> None:
        """End all readers."""
        if self._starting is not None:
            await self._starting
        for reader in tuple(self._workers):
            await self._kill_worker(reader)

    async def _run_job(self, head: dict[str, object], body: bytes) -> tuple[dict[str, object], bytes] | None:
        """Give a job to a reader that is free and return what comes of it; None when the reader failed at it."""
        async with self._slots:
            reader = await self._acquire_worker()
            try:
                async with asyncio.timeout(self._timeout_s):
                    found = await _exchange(reader, head, body)
            except (TimeoutError, OSError, EOFError, ValueError):
                await self._kill_worker(reader)
                return None
            except asyncio.CancelledError:
                await self._kill_worker(reader)
                raise
            self._idle.append(reader)
            return found

    async def _acquire_worker(self) -> asyncio.subprocess.Process:
        if self._starting is not None:
            coming, self._starting = self._starting, None
            return await coming
        return self._idle.pop() if self._idle else await self._start_worker()

    async def _start_worker(self) -> asyncio.subprocess.Process:
        paths = [path for path in sys.path if path.startswith("/")]
        reader = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-c",
            _START,
            json.dumps(paths),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            cwd="/",
            limit=_CHUNK_BYTES * 4,
            start_new_session=True,
        )
        self._workers.add(reader)
        return reader

    async def _kill_worker(self, reader: asyncio.subprocess.Process) -> None:
        self._workers.discard(reader)
        if reader in self._idle:
            self._idle.remove(reader)
        with suppress(ProcessLookupError):
            reader.kill()
        await reader.wait()


async def _exchange(
    reader: asyncio.subprocess.Process, head: dict[str, object], body: bytes
) -> tuple[dict[str, object], bytes]:
    assert reader.stdin is not None
    assert reader.stdout is not None
    packed = json.dumps({**head, "size": len(body)}).encode()
    reader.stdin.write(len(packed).to_bytes(4, "big") + packed)
    rest = memoryview(body)
    for at in range(0, len(rest), _CHUNK_BYTES):
        reader.stdin.write(rest[at : at + _CHUNK_BYTES])
        await reader.stdin.drain()
    length = int.from_bytes(await reader.stdout.readexactly(4), "big")
    known = json.loads(await reader.stdout.readexactly(length))
    return known, await reader.stdout.readexactly(known["size"])
