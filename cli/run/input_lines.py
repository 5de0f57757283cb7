"""Lines of stdin for an event loop: read in a thread, with a limit on their length."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterable, Iterator

MAX_LINE_BYTES = 1_000_000
_CHUNK_BYTES = 1 << 16
# Number of lines that are read ahead.
_READ_AHEAD = 16
_STDIN = 0


def split_lines(chunks: Iterable[bytes], limit: int = MAX_LINE_BYTES) -> Iterator[bytes | None]:
    """Yield lines without line ends; None for a line that is too long, which is never held in memory."""
    line = bytearray()
    is_too_long = False
    for chunk in chunks:
        *parts, rest = chunk.split(b"\n")
        for part in parts:
            is_too_long = is_too_long or len(line) + len(part) > limit
            yield None if is_too_long else bytes(line + part)
            line, is_too_long = bytearray(), False
        is_too_long = is_too_long or len(line) + len(rest) > limit
        line = bytearray() if is_too_long else line + rest
    if line or is_too_long:
        yield None if is_too_long else bytes(line)


class InputLines:
    """Iterates over the lines of stdin until its end; a thread reads them, because stdin may be a file or a pipe."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | EOFError | None] = asyncio.Queue()
        self._room = threading.Semaphore(_READ_AHEAD)
        threading.Thread(target=self._read, daemon=True, name="stdin").start()

    async def __aiter__(self) -> AsyncIterator[bytes | None]:
        while not isinstance(line := await self._lines.get(), EOFError):
            self._room.release()
            yield line

    def _read(self) -> None:
        try:
            for line in split_lines(_chunks()):
                self._room.acquire()
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            self._loop.call_soon_threadsafe(self._lines.put_nowait, EOFError())
        except RuntimeError:
            # The event loop is closed: the program ends without waiting for its input.
            return


def _chunks() -> Iterator[bytes]:
    try:
        while chunk := os.read(_STDIN, _CHUNK_BYTES):
            yield chunk
    except OSError:
        # A closed stdin is an empty one.
        return
