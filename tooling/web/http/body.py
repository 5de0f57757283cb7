"""Decompress a response body while reading it, never beyond its limit: a decompression bomb stays small."""

import re
import zlib

from tooling.web.http.messages import WebFault

# Pages usually compress about tenfold; only very repetitive text reaches this ratio.
BOMB_RATIO = 200
_GZIP, _ZLIB, _RAW_DEFLATE = 31, 15, -15
_GZIP_MAGIC = b"\x1f\x8b"

ENDED_EARLY = "the response ended early, in the middle of compressed data"


class BodyReader:
    """Collects the decompressed body from network chunks, up to a limit."""

    def __init__(self, encoding: str, limit: int) -> None:
        self._limit = limit
        self._decompressor = _decompressor_for(encoding)
        self._parts: list[bytes] = []
        self._size = 0
        self._raw_size = 0
        self.is_truncated = False

    @property
    def data(self) -> bytes:
        return b"".join(self._parts)

    @property
    def is_bomb(self) -> bool:
        """Return whether the body reached the limit with an implausible compression ratio."""
        unread = self._decompressor.unread if self._decompressor else 0
        return self.is_truncated and self._size > (self._raw_size - unread) * BOMB_RATIO

    def feed(self, chunk: bytes) -> bool:
        """Add a chunk; return False when the limit is reached."""
        self._raw_size += len(chunk)
        if self._decompressor is None:
            self._append(chunk)
        else:
            try:
                for part in self._decompressor.feed(chunk, self._limit + 1 - self._size):
                    self._append(part)
            except zlib.error as error:
                raise WebFault("encoding", "the response cannot be decompressed") from error
        # Input that decompresses to nothing could continue forever.
        if self._raw_size > self._limit:
            self.is_truncated = True
        return not self.is_truncated

    def finish(self) -> None:
        """Mark the end of the body; raise WebFault if compressed data is incomplete."""
        if not self.is_truncated and self._decompressor and not self._decompressor.is_complete:
            raise WebFault("broken", ENDED_EARLY)

    def _append(self, part: bytes) -> None:
        bytes_left = self._limit - self._size
        if len(part) > bytes_left:
            self.is_truncated = True
            part = part[:bytes_left]
        self._parts.append(part)
        self._size += len(part)


class _Decompressor:
    """Decompresses gzip, also with several members, and deflate, with or without the zlib header."""

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._stream = zlib.decompressobj(_GZIP) if is_gzip else None
        self._pending = b""
        self._is_finished = False
        self._has_input = False

    @property
    def unread(self) -> int:
        """Return how many bytes of input are still unprocessed."""
        return len(self._pending)

    @property
    def is_complete(self) -> bool:
        """Return whether the last stream has ended; empty input is complete."""
        return not self._pending if self._stream is None else self._stream.eof or not self._has_input

    def feed(self, data: bytes, max_bytes: int) -> list[bytes]:
        """Return the decompressed data, at most `max_bytes`."""
        parts: list[bytes] = []
        self._pending += data
        self._has_input = self._has_input or bool(data)
        while self._pending and max_bytes > 0 and self._is_ready():
            assert self._stream is not None
            part = self._stream.decompress(self._pending, max_bytes)
            parts.append(part)
            max_bytes -= len(part)
            self._pending = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        return parts

    def _is_ready(self) -> bool:
        """Open a stream for the pending bytes if needed; False if there are too few of them or the data has ended."""
        if not self._is_finished and self._stream is not None and not self._stream.eof:
            return True
        if self._is_finished or (self._stream is not None and not self._is_gzip):
            self._is_finished, self._pending = True, b""
        elif len(self._pending) >= len(_GZIP_MAGIC):
            self._start_stream()
        return not self._is_finished and self._stream is not None and not self._stream.eof

    def _start_stream(self) -> None:
        if not self._is_gzip:
            self._stream = zlib.decompressobj(_ZLIB if _has_zlib_header(self._pending) else _RAW_DEFLATE)
        elif self._pending.startswith(_GZIP_MAGIC):
            self._stream = zlib.decompressobj(_GZIP)
        else:
            # Padding after the last member; browsers ignore it too.
            self._is_finished, self._pending = True, b""


def _has_zlib_header(data: bytes) -> bool:
    return data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0


def _decompressor_for(encoding: str) -> _Decompressor | None:
    layers = [name for part in encoding.lower().split(",") if (name := part.strip()) not in ("", "identity")]
    if not layers:
        return None
    if len(layers) > 1 or layers[0] not in ("gzip", "x-gzip", "deflate"):
        # Quote only valid coding names: the header could carry a message to the model.
        names = [layer for layer in layers[:3] if re.fullmatch("[a-z0-9-]{1,10}", layer)]
        encodings = ", ".join(names) or "an unknown coding"
        raise WebFault("encoding", f"the response is compressed as {encodings}, which was not requested")
    return _Decompressor(is_gzip=layers[0] != "deflate")
