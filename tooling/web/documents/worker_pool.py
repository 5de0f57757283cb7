"""A pool of worker processes that parse documents, one document at a time each.

A parser of untrusted pages is the part most likely to hang, grow or crash, and it holds the GIL while it works. In its
own process it can be killed at any time and never blocks the event loop.
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import replace

from tooling.contract.json_codec import decode
from tooling.images.header import ImageHeader
from tooling.web.documents.read_document import ParsedDocument, RawDocument, ReadMode
from tooling.web.passages import Passage

JOB_TIMEOUT_S = 15.0
MAX_WORKERS = 4
# The transport copies the bytes that the pipe has not accepted yet, repeatedly for larger chunks.
_CHUNK_BYTES = 65_536
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from tooling.web.documents.worker import main; main()"
)


class WorkerPool:
    """Parses documents in parallel; idle workers are reused until the pool is closed."""

    def __init__(self, *, timeout_s: float = JOB_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._slots = asyncio.Semaphore(max(1, min(MAX_WORKERS, os.cpu_count() or 1)))
        self._idle: list[asyncio.subprocess.Process] = []
        self._workers: set[asyncio.subprocess.Process] = set()
        self._starting: asyncio.Future[asyncio.subprocess.Process] | None = None

    def warm_up(self) -> None:
        """Start the first worker while its page is still being downloaded."""
        if not self._workers and self._starting is None:
            self._starting = asyncio.ensure_future(self._start_worker())

    async def read(self, raw: RawDocument) -> ParsedDocument:
        """Parse a document; if a worker hangs or crashes, fall back to simpler modes."""
        modes: tuple[ReadMode, ...] = ("auto", "text", "raw") if raw.mode == "auto" else (raw.mode,)
        about = {"content_type": raw.content_type, "url": raw.url, "is_truncated": raw.is_truncated}
        for mode in modes:
            reply = await self._run_job({"job": "read", **about, "mode": mode}, raw.body)
            if reply is not None:
                head, text = reply
                return replace(decode(ParsedDocument, head, extra="ignore"), text=text.decode("utf-8", "replace"))
        return ParsedDocument(problem="it could not be parsed in time")

    async def scale_image(self, data: bytes) -> tuple[bytes, ImageHeader] | str:
        """Return an image scaled for models, or why there is none."""
        reply = await self._run_job({"job": "image"}, data)
        if reply is None:
            return "it could not be decoded in time"
        head, content = reply
        return (content, decode(ImageHeader, head, extra="ignore")) if content else str(head["problem"])

    async def passages(self, query: str, text: str, max_chars: int) -> list[Passage]:
        """Return the passages of a text that match a query; none if the search times out."""
        head = {"job": "passages", "query": query, "max_chars": max_chars}
        reply = await self._run_job(head, text.encode("utf-8", "replace"))
        passages = reply[0].get("passages") if reply else None
        if not isinstance(passages, list):
            return []
        return [decode(Passage, passage, extra="ignore") for passage in passages]

    async def close(self) -> None:
        """Kill all workers."""
        if self._starting is not None:
            await self._starting
        for worker in tuple(self._workers):
            await self._kill_worker(worker)

    async def _run_job(self, head: dict[str, object], body: bytes) -> tuple[dict[str, object], bytes] | None:
        """Run a job on a free worker; None if the worker hangs or crashes, in which case it is killed."""
        async with self._slots:
            worker = await self._acquire_worker()
            try:
                async with asyncio.timeout(self._timeout_s):
                    reply = await _exchange(worker, head, body)
            except (TimeoutError, OSError, EOFError, ValueError):
                await self._kill_worker(worker)
                return None
            except asyncio.CancelledError:
                await self._kill_worker(worker)
                raise
            self._idle.append(worker)
            return reply

    async def _acquire_worker(self) -> asyncio.subprocess.Process:
        if self._starting is not None:
            starting, self._starting = self._starting, None
            return await starting
        return self._idle.pop() if self._idle else await self._start_worker()

    async def _start_worker(self) -> asyncio.subprocess.Process:
        paths = [path for path in sys.path if path.startswith("/")]
        worker = await asyncio.create_subprocess_exec(
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
        self._workers.add(worker)
        return worker

    async def _kill_worker(self, worker: asyncio.subprocess.Process) -> None:
        self._workers.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        with suppress(ProcessLookupError):
            worker.kill()
        await worker.wait()


async def _exchange(
    worker: asyncio.subprocess.Process, head: dict[str, object], body: bytes
) -> tuple[dict[str, object], bytes]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    encoded = json.dumps({**head, "size": len(body)}).encode()
    worker.stdin.write(len(encoded).to_bytes(4, "big") + encoded)
    view = memoryview(body)
    for at in range(0, len(view), _CHUNK_BYTES):
        worker.stdin.write(view[at : at + _CHUNK_BYTES])
        await worker.stdin.drain()
    length = int.from_bytes(await worker.stdout.readexactly(4), "big")
    reply = json.loads(await worker.stdout.readexactly(length))
    return reply, await worker.stdout.readexactly(reply["size"])
