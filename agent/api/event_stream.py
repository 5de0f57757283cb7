"""The events of a run as server-sent events, read from its log: what is there, then what is added, until it ends.

Streams hold no queues: each reads the log at its own pace, so a slow client costs no memory, and one that comes back
with the number of the last event it has seen gets everything after that.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

from agent.protocol.events import RunCompleted
from agent.sessions.lock import lock_holder
from agent.sessions.log.log_index import LogLine, parse_head
from agent.sessions.store import SessionFolder
from tooling.contract.fast_dataclass import dataclass
from tooling.files.open_regular import open_fd

_POLL_S = 0.2
# Proxies and phones give up connections on which nothing is sent.
HEARTBEAT_S = 15.0
_HEARTBEAT = b": still here\n\n"
_CHUNK_BYTES = 1 << 18
# A run that nobody works on and that has no end; a moment later it may have been resumed as another run.
INTERRUPTED = "interrupted"
ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """A log as it was seen last; `changed` is set when it is seen otherwise."""

    size: int
    is_live: bool
    changed: asyncio.Event


class LogWatch:
    """Looks at each log with open streams a few times a second, once for all of them, and wakes them if it changed."""

    def __init__(self, poll_s: float = _POLL_S) -> None:
        self._poll_s = poll_s
        self._glances: dict[str, Glance] = {}
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._streams: dict[str, int] = {}

    @property
    def stream_count(self) -> int:
        """The number of open streams."""
        return sum(self._streams.values())

    def glance(self, folder: SessionFolder) -> Glance:
        """Return how the log was seen last."""
        return self._glances[folder.id]

    def open(self, folder: SessionFolder) -> None:
        """Count a stream of this log, and watch it."""
        self._streams[folder.id] = self._streams.get(folder.id, 0) + 1
        if folder.id not in self._watchers:
            self._glances[folder.id] = _look(folder)
            self._watchers[folder.id] = asyncio.create_task(self._watch(folder), name="log watch")

    def close(self, folder: SessionFolder) -> None:
        """Forget a stream; the last one of a log ends its watch."""
        self._streams[folder.id] -= 1
        if not self._streams[folder.id]:
            del self._streams[folder.id], self._glances[folder.id]
            self._watchers.pop(folder.id).cancel()

    async def _watch(self, folder: SessionFolder) -> None:
        while True:
            await asyncio.sleep(self._poll_s)
            before, now = self._glances[folder.id], _look(folder)
            if (before.size, before.is_live) != (now.size, now.is_live):
                self._glances[folder.id] = now
                before.changed.set()


class RunStream:
    """The stream of one run; events up to number `after` are left out."""

    def __init__(
        self,
        folder: SessionFolder,
        run_id: str,
        watch: LogWatch,
        *,
        after: int = 0,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        self._folder = folder
        self._run_id = run_id
        self._watch = watch
        self._after = after
        self._heartbeat_s = heartbeat_s
        self._offset = 0
        self._has_started = False
        self._end = ""

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield one frame per event: its id is the event's number, its data the line of the log."""
        self._watch.open(self._folder)
        try:
            yield b"retry: 2000\n\n"
            while not self._end:
                # Looked at before reading, so that the last lines of a run that ends now are still read.
                glance = self._watch.glance(self._folder)
                is_live = glance.is_live or lock_holder(self._folder) is not None
                async for line in self._new_lines():
                    if line.seq > self._after:
                        yield _frame(line)
                if not is_live:
                    self._end = self._end or INTERRUPTED
                elif not self._end and not await _is_set(glance.changed, self._heartbeat_s):
                    yield _HEARTBEAT
            yield f'event: end\ndata: {{"reason": "{self._end}"}}\n\n'.encode()
        finally:
            self._watch.close(self._folder)

    async def _new_lines(self) -> AsyncIterator[LogLine]:
        """Yield the lines of the run that were added; a line that is still being written is read again later."""
        rest = b""
        while chunk := _read(self._folder.events, self._offset + len(rest)):
            *lines, rest = (rest + chunk).split(b"\n")
            for raw in lines:
                self._offset += len(raw) + 1
                line = parse_head(raw + b"\n")
                if line and line.run_id == self._run_id:
                    self._has_started = True
                    yield line
                    self._end = ENDED if line.type == RunCompleted.type else ""
                elif line and self._has_started:
                    # A session has one run at a time: a line of another run means that this one is over.
                    self._end = INTERRUPTED
                if self._end:
                    return
            # Other requests must not wait until a long log is read.
            await asyncio.sleep(0)


async def _is_set(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except TimeoutError:
        return False
    return True


def _look(folder: SessionFolder) -> Glance:
    try:
        size = folder.events.stat().st_size
    except OSError:
        size = 0
    return Glance(size=size, is_live=lock_holder(folder) is not None, changed=asyncio.Event())


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
