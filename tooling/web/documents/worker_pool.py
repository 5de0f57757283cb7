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
from tooling.web.documents.read_document import Answer, Reading, Way
from tooling.web.passages import Passage

PATIENCE_S = 15.0
MOST_READERS = 4
# Larger pieces would be copied over and over while the pipe takes them in.
_PIECE = 65_536
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from tooling.web.documents.worker import main; main()"
)


class ReadingRoom:
    """Reads answers side by side; readers stay for the next page and leave with the run."""

    def __init__(self, *, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._seats = asyncio.Semaphore(max(1, min(MOST_READERS, os.cpu_count() or 1)))
        self._idle: list[asyncio.subprocess.Process] = []
        self._all: set[asyncio.subprocess.Process] = set()
        self._coming: asyncio.Future[asyncio.subprocess.Process] | None = None

    def warm_up(self) -> None:
        """Start the first reader while its page is still on the way: it takes as long to come."""
        if not self._all and self._coming is None:
            self._coming = asyncio.ensure_future(self._new_reader())

    async def read(self, answer: Answer) -> Reading:
        """Return the text of an answer; a page that no reader can finish is read as plain text."""
        ways: tuple[Way, ...] = ("auto", "text", "raw") if answer.way == "auto" else (answer.way,)
        about = {"content_type": answer.content_type, "url": answer.url, "is_cut": answer.is_cut}
        for way in ways:
            found = await self._done({"job": "read", **about, "way": way}, answer.body)
            if found is not None:
                head, text = found
                return replace(decode(Reading, head, extra="ignore"), text=text.decode("utf-8", "replace"))
        return Reading(problem="nothing could read it in time")

    async def passages(self, query: str, text: str, most_chars: int) -> list[Passage]:
        """Return the passages of a text that fit a query; of one that takes too long, none."""
        head = {"job": "passages", "query": query, "most_chars": most_chars}
        found = await self._done(head, text.encode("utf-8", "replace"))
        places = found[0].get("passages") if found else None
        if not isinstance(places, list):
            return []
        return [decode(Passage, place, extra="ignore") for place in places]

    async def close(self) -> None:
        """End all readers."""
        if self._coming is not None:
            await self._coming
        for reader in tuple(self._all):
            await self._dismiss(reader)

    async def _done(self, head: dict[str, object], body: bytes) -> tuple[dict[str, object], bytes] | None:
        """Give a job to a reader that is free and return what comes of it; None when the reader failed at it."""
        async with self._seats:
            reader = await self._free_reader()
            try:
                async with asyncio.timeout(self._patience_s):
                    found = await _exchange(reader, head, body)
            except (TimeoutError, OSError, EOFError, ValueError):
                await self._dismiss(reader)
                return None
            except asyncio.CancelledError:
                await self._dismiss(reader)
                raise
            self._idle.append(reader)
            return found

    async def _free_reader(self) -> asyncio.subprocess.Process:
        if self._coming is not None:
            coming, self._coming = self._coming, None
            return await coming
        return self._idle.pop() if self._idle else await self._new_reader()

    async def _new_reader(self) -> asyncio.subprocess.Process:
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
            limit=_PIECE * 4,
            start_new_session=True,
        )
        self._all.add(reader)
        return reader

    async def _dismiss(self, reader: asyncio.subprocess.Process) -> None:
        self._all.discard(reader)
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
    for at in range(0, len(rest), _PIECE):
        reader.stdin.write(rest[at : at + _PIECE])
        await reader.stdin.drain()
    length = int.from_bytes(await reader.stdout.readexactly(4), "big")
    known = json.loads(await reader.stdout.readexactly(length))
    return known, await reader.stdout.readexactly(known["size"])
