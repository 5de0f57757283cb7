"""`events.jsonl`: append-only, fsync'd, readable at any moment, whatever was killed in the middle of a write."""

import os
from collections.abc import Iterator
from pathlib import Path

from agent.protocol.codec import CodecError, from_line
from agent.protocol.events import Envelope

TAIL_BYTES = 1 << 16


class FileLog:
    """Appends whole lines to one file; a line torn by a crash is closed off so that the next one stays whole."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(self._fd).st_size
        if size == 0:
            _sync_folder(path.parent)
        elif os.pread(self._fd, 1, size - 1) != b"\n":
            os.write(self._fd, b"\n")

    def append(self, lines: bytes) -> None:
        """Write and fsync; on failure cut back what was written so that the file ends with a whole line."""
        start = os.fstat(self._fd).st_size
        try:
            rest = memoryview(lines)
            while rest:
                rest = rest[os.write(self._fd, rest) :]
            os.fsync(self._fd)
        except OSError:
            os.ftruncate(self._fd, start)
            raise

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def read_events(path: Path) -> Iterator[Envelope]:
    """Yield the events of a log in order; lines torn by a crash are passed over."""
    try:
        with path.open("rb") as lines:
            for line in lines:
                try:
                    yield from_line(line)
                except CodecError:
                    continue
    except FileNotFoundError:
        return


def last_seq(path: Path) -> int:
    """Return the highest number in a log by reading only its end."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - TAIL_BYTES))
            tail = log.read().splitlines()
    except FileNotFoundError:
        return 0
    for line in reversed(tail):
        try:
            return from_line(line).seq
        except CodecError:
            continue
    return max((envelope.seq for envelope in read_events(path)), default=0)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
