"""`events.jsonl`: append-only, fsync'd, and readable even after a crash in the middle of a write."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.protocol.codec import CodecError, from_line
from agent.protocol.envelope import Envelope
from agent.sessions.log.log_index import parse_head, read_lines
from tooling.files.atomic_write import fsync_dir
from tooling.files.open_regular import open_fd, open_regular

TAIL_BYTES = 1 << 16


class FileLog:
    """Appends complete lines to one file, one process at a time.

    A partial last line is truncated: an event is published only after it is on disk, so no client has seen it.
    """

    def __init__(self, path: Path) -> None:
        self._fd = open_fd(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        with self._locked():
            # The name of a new file is synced with its first events: the file system commits both at once.
            self._unsynced_folder = path.parent if self._repair_tail() == 0 else None

    def append(self, lines: bytes) -> None:
        """Write and fsync; on failure truncate the file back to its last complete line."""
        with self._locked():
            start = self._repair_tail()
            try:
                rest = memoryview(lines)
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
                os.fsync(self._fd)
                if self._unsynced_folder:
                    fsync_dir(self._unsynced_folder)
                    self._unsynced_folder = None
            except OSError:
                os.ftruncate(self._fd, start)
                raise

    def close(self) -> None:
        os.close(self._fd)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from appending, so that a truncation removes only our own bytes."""
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _repair_tail(self) -> int:
        """Make the file end with a complete line and return its size."""
        size = os.fstat(self._fd).st_size
        if size == 0 or os.pread(self._fd, 1, size - 1) == b"\n":
            return size
        start = _last_line_start(self._fd, size)
        if os.pread(self._fd, 1, size - 1) == b"}" and _is_event(_read_at(self._fd, start, size)):
            # Only the line feed is missing; the event itself is complete.
            os.write(self._fd, b"\n")
            return size + 1
        os.ftruncate(self._fd, start)
        return start


def read_events(path: Path) -> Iterator[Envelope]:
    """Yield the events of a log in order, skipping lines that a crash left incomplete."""
    for line in read_lines(path):
        if envelope := line.envelope():
            yield envelope


def last_seq(path: Path) -> int:
    """Return the highest sequence number of a log, normally by reading only its end."""
    try:
        with open_regular(path) as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - TAIL_BYTES))
            tail = log.read().splitlines(keepends=True)
    except FileNotFoundError:
        return 0
    # Processes that append concurrently number their events independently.
    numbers = [line.seq for line in map(parse_head, tail) if line]
    return max(numbers) if numbers else max((line.seq for line in read_lines(path)), default=0)


def _last_line_start(fd: int, size: int) -> int:
    """Return the offset after the last line feed."""
    end = size
    while end > 0:
        start = max(0, end - TAIL_BYTES)
        found = os.pread(fd, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _read_at(fd: int, start: int, end: int) -> bytes:
    """Return the bytes between two offsets; one call may return fewer."""
    chunks: list[bytes] = []
    while start < end and (chunk := os.pread(fd, end - start, start)):
        chunks.append(chunk)
        start += len(chunk)
    return b"".join(chunks)


def _is_event(line: bytes) -> bool:
    try:
        from_line(line)
    except (CodecError, RecursionError):
        return False
    return True
