"""Captures the head and tail of an output in memory, its total size, and the full output in a file."""

import os
from collections.abc import Callable
from pathlib import Path

# A runaway command must not fill the disk, and the saved output is searched for secrets after the command has ended:
# further bytes are only counted.
SPOOL_LIMIT_BYTES = 32 * 1024 * 1024


class OutputCollector:
    """Collects bytes; its memory is limited to about the cap."""

    def __init__(
        self,
        *,
        cap_bytes: int,
        spool: Path | None = None,
        spool_limit: int = SPOOL_LIMIT_BYTES,
        on_data: Callable[[bytes], None] | None = None,
    ) -> None:
        self._on_data = on_data
        self._cap = max(cap_bytes, 2)
        self._half = self._cap // 2
        self._head = bytearray()
        self._tail: bytearray | None = None
        self._path = spool
        self._spool_left = spool_limit
        self._file: int | None = None
        self.total_bytes = 0
        self.spool: Path | None = None

    def feed(self, data: bytes) -> None:
        """Add the next bytes."""
        self.total_bytes += len(data)
        if self._on_data is not None:
            self._on_data(data)
        if self._tail is None:
            self._head += data
            if len(self._head) > self._cap:
                self._overflow()
            return
        self._tail += data
        self._write(data)
        if len(self._tail) > 2 * self._cap:
            del self._tail[: -self._half]

    @property
    def cut_at(self) -> int | None:
        """The position in `output` where bytes are missing, or None if it is complete."""
        return None if self._tail is None else len(self._head)

    @property
    def output(self) -> bytes:
        """All bytes, or head and tail if there were too many."""
        return bytes(self._head) if self._tail is None else bytes(self._head + self._tail[-self._half :])

    def close(self) -> None:
        """Close the spool file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _overflow(self) -> None:
        self._open()
        self._write(bytes(self._head))
        self._tail = self._head[self._half :]
        del self._head[self._half :]

    def _open(self) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.open(self._path, flags, 0o600)
            self.spool = self._path
        except OSError:
            self._file = None

    def _write(self, data: bytes) -> None:
        if self._file is None or self._spool_left <= 0:
            return
        view = memoryview(data)[: self._spool_left]
        try:
            while view:
                written = os.write(self._file, view)
                self._spool_left -= written
                view = view[written:]
        except OSError:
            # A full disk must not end the command; the saved part stays.
            self._spool_left = 0
