"""The events of a run as server-sent events: reads its log, then follows it until the run ends.

Streams hold no queues: each reads the log at its own pace, so a slow client costs no memory, and a client that
reconnects with the number of its last event gets everything after it.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from agent.protocol.events import RunCompleted
from agent.sessions.lock import lock_holder
from agent.sessions.log.log_index import LogLine, parse_head
from agent.sessions.store import SessionFolder
from tooling.contract.fast_dataclass import dataclass
from tooling.files.open_regular import open_fd

_POLL_S = 0.2
# Proxies and phones drop idle connections.
HEARTBEAT_S = 15.0
_HEARTBEAT = b": still here\n\n"
_CHUNK_BYTES = 1 << 18
_WOKEN_AT_ONCE = 8
# A run without an end that no process works on; a moment later it may be resumed as another run.
INTERRUPTED = "interrupted"
ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """State of a log at the last poll: the lines between `start` and `end` are new since the poll before."""

    start: int
    end: int
    lines: tuple[LogLine, ...]
    is_live: bool


class LogWatch:
    """Polls each log with open streams a few times a second, once for all its streams, and wakes them on a change.

    They are also woken regularly to send a keep-alive.
    """

    def __init__(self, poll_s: float = _POLL_S, heartbeat_s: float = HEARTBEAT_S) -> None:
        self._poll_s = poll_s
        self._heartbeat_s = heartbeat_s
        self._glances: dict[str, Glance] = {}
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._streams: dict[str, int] = {}
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}

    @property
    def stream_count(self) -> int:
        """The number of open streams."""
        return sum(self._streams.values())

    def glance(self, folder: SessionFolder) -> Glance:
        """Return the state of the log at the last poll."""
        return self._glances[folder.id]

    async def wait(self, folder: SessionFolder, seen: Glance) -> None:
        """Wait until the state differs from the one seen."""
        if self._glances[folder.id] is seen:
            woken = asyncio.get_running_loop().create_future()
            self._waiting[folder.id].append(woken)
            await woken

    def open(self, folder: SessionFolder) -> None:
        """Count a stream of this log, and poll the log."""
        self._streams[folder.id] = self._streams.get(folder.id, 0) + 1
        if folder.id not in self._watchers:
            self._waiting[folder.id] = []
            self._glances[folder.id] = _look(folder, _last_line_end(folder.events))
            self._watchers[folder.id] = asyncio.create_task(self._watch(folder), name="log watch")

    def close(self, folder: SessionFolder) -> None:
        """Remove a stream; the last one of a log stops its polling."""
        self._streams[folder.id] -= 1
        if not self._streams[folder.id]:
            del self._streams[folder.id], self._glances[folder.id], self._waiting[folder.id]
            self._watchers.pop(folder.id).cancel()

    async def _watch(self, folder: SessionFolder) -> None:
        silent_s = 0.0
        while True:
            await asyncio.sleep(self._poll_s)
            silent_s += self._poll_s
            before = self._glances[folder.id]
            now = _look(folder, before.end)
            if now.lines or now.is_live != before.is_live or silent_s >= self._heartbeat_s:
                self._glances[folder.id] = now
                silent_s = 0.0
                await self._wake(folder)

    async def _wake(self, folder: SessionFolder) -> None:
        """Wake all waiting streams in batches, so that other requests need not wait for hundreds of streams."""
        waiting, self._waiting[folder.id] = self._waiting[folder.id], []
        batches = len(waiting) // _WOKEN_AT_ONCE + 1
        for number, woken in enumerate(waiting, 1):
            if not woken.done():
                woken.set_result(None)
            if number % _WOKEN_AT_ONCE == 0:
                await asyncio.sleep(self._poll_s / 2 / batches)


class RunStream:
    """The stream of one run; events up to number `after` are skipped."""

    def __init__(self, folder: SessionFolder, run_id: str, watch: LogWatch, *, after: int = 0) -> None:
        self._folder = folder
        self._run_id = run_id
        self._watch = watch
        self._after = after
        self._offset = 0
        self._has_started = False
        self._end = ""

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield frames, one per event: its id is the event's number, its data the line of the log."""
        self._watch.open(self._folder)
        try:
            yield b"retry: 2000\n\n"
            while not self._end:
                glance = self._watch.glance(self._folder)
                # Checked before reading, so that the last lines of a run that ends now are still read.
                is_live = glance.is_live or lock_holder(self._folder) is not None
                if self._offset == glance.start:
                    self._offset = glance.end
                    yield self._take(glance.lines) or _HEARTBEAT
                elif self._offset < glance.end:
                    async for frames in self._catch_up():
                        yield frames
                if not is_live:
                    self._end = self._end or INTERRUPTED
                elif not self._end and self._offset >= glance.end:
                    await self._watch.wait(self._folder, glance)
            yield f'event: end\ndata: {{"reason": "{self._end}"}}\n\n'.encode()
        finally:
            self._watch.close(self._folder)

    async def _catch_up(self) -> AsyncIterator[bytes]:
        """Yield the events of the log after our position."""
        while not self._end and (found := _read_lines(self._folder.events, self._offset)).end > self._offset:
            self._offset = found.end
            if frames := self._take(found.lines):
                yield frames
            # Other requests must not wait until a long log is read.
            await asyncio.sleep(0)

    def _take(self, lines: Iterable[LogLine]) -> bytes:
        """Return the frames of the lines that belong to the run and were not sent yet."""
        frames: list[bytes] = []
        for line in lines:
            if line.run_id == self._run_id:
                self._has_started = True
                if line.seq > self._after:
                    frames.append(_frame(line))
                self._end = ENDED if line.type == RunCompleted.type else ""
            elif self._has_started:
                # A session has one run at a time: a line of another run means that this one has ended.
                self._end = INTERRUPTED
            if self._end:
                break
        return b"".join(frames)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FoundLines:
    lines: tuple[LogLine, ...]
    end: int


def _look(folder: SessionFolder, start: int) -> Glance:
    is_live = lock_holder(folder) is not None
    found = _read_lines(folder.events, start)
    return Glance(start=start, end=found.end, lines=found.lines, is_live=is_live)


def _read_lines(path: Path, start: int) -> _FoundLines:
    """Read a batch of complete lines from an offset; a partly written line is not read."""
    data = b""
    while chunk := _read(path, start + len(data)):
        data += chunk
        if b"\n" in chunk:
            break
    complete, newline, _ = data.rpartition(b"\n")
    lines = [parse_head(raw + b"\n") for raw in complete.split(b"\n")] if newline else []
    end = start + len(complete) + len(newline)
    return _FoundLines(lines=tuple(line for line in lines if line), end=end)


def _last_line_end(path: Path) -> int:
    """Return the offset after the last complete line."""
    try:
        position = path.stat().st_size
    except OSError:
        return 0
    while position > 0:
        start = max(0, position - _CHUNK_BYTES)
        found = _read(path, start)[: position - start].rfind(b"\n")
        if found >= 0:
            return start + found + 1
        position = start
    return 0


def _frame(line: LogLine) -> bytes:
    # A line of the log has no line breaks: JSON escapes them.
    return b"id: %d\ndata: %s\n\n" % (line.seq, line.raw.rstrip(b"\r\n").replace(b"\r", b" "))


def _read(path: Path, offset: int) -> bytes:
    try:
        fd = open_fd(path)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(fd, _CHUNK_BYTES, offset)
    finally:
        os.close(fd)
