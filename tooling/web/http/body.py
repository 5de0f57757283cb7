"""The body of an answer, unpacked while it is read and never beyond its limit: a small bomb stays small."""

import re
import zlib

from tooling.web.http.messages import WebFault

# A page packed by the usual programs becomes some ten times smaller; text that repeats itself may reach this.
BOMB_RATIO = 200
_GZIP, _ZLIB, _RAW_DEFLATE = 31, 15, -15
_GZIP_MAGIC = b"\x1f\x8b"


class BodyReader:
    """Takes in chunks as they come from the network and keeps what they hold, up to a limit."""

    def __init__(self, encoding: str, limit: int) -> None:
        self._limit = limit
        self._decompressor = _decompressor_for(encoding)
        self._parts: list[bytes] = []
        self._size = 0
        self._raw_size = 0
        self.is_cut = False

    @property
    def data(self) -> bytes:
        """Return what was read, unpacked."""
        return b"".join(self._parts)

    @property
    def is_bomb(self) -> bool:
        """Say whether the limit was reached out of next to nothing."""
        unread = self._decompressor.unread if self._decompressor else 0
        return self.is_cut and self._size > (self._raw_size - unread) * BOMB_RATIO

    def feed(self, chunk: bytes) -> bool:
        """Take in a chunk; False when no more is wanted."""
        self._raw_size += len(chunk)
        if self._decompressor is None:
            self._append(chunk)
        else:
            try:
                for part in self._decompressor.feed(chunk, self._limit + 1 - self._size):
                    self._append(part)
            except zlib.error as error:
                raise WebFault("encoding", "the answer is packed in a way that cannot be unpacked") from error
        # Bytes that unpack to nothing, for ever, are a stream without an end as well.
        if self._raw_size > self._limit:
            self.is_cut = True
        return not self.is_cut

    def finish(self) -> None:
        """Note that no more comes; raises WebFault when a packed body had not come to its end."""
        if not self.is_cut and self._decompressor and not self._decompressor.is_complete:
            raise WebFault("broken", "the answer ended too early, in the middle of what was packed")

    def _append(self, part: bytes) -> None:
        room = self._limit - self._size
        if len(part) > room:
            self.is_cut = True
            part = part[:room]
        self._parts.append(part)
        self._size += len(part)


class _Decompressor:
    """Inflates gzip, in several members too, and what is called deflate, with its header or without."""

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._stream = zlib.decompressobj(_GZIP) if is_gzip else None
        self._pending = b""
        self._is_finished = False
        self._has_input = False

    @property
    def unread(self) -> int:
        """Return how many bytes were given and not looked at."""
        return len(self._pending)

    @property
    def is_complete(self) -> bool:
        """Say whether the last stream has come to its end; of nothing at all nothing is missing."""
        return not self._pending if self._stream is None else self._stream.eof or not self._has_input

    def feed(self, data: bytes, room: int) -> list[bytes]:
        """Return what the data unpacks to, `room` bytes at most."""
        parts: list[bytes] = []
        self._pending += data
        self._has_input = self._has_input or bool(data)
        while self._pending and room > 0 and self._is_ready():
            assert self._stream is not None
            part = self._stream.decompress(self._pending, room)
            parts.append(part)
            room -= len(part)
            self._pending = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        return parts

    def _is_ready(self) -> bool:
        """Make sure of a stream for the next bytes; False when there are too few of them, or the end has come."""
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
            # Padding behind the last member; browsers do not mind it either.
            self._is_finished, self._pending = True, b""


def _has_zlib_header(data: bytes) -> bool:
    return data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0


def _decompressor_for(encoding: str) -> _Decompressor | None:
    layers = [name for part in encoding.lower().split(",") if (name := part.strip()) not in ("", "identity")]
    if not layers:
        return None
    if len(layers) > 1 or layers[0] not in ("gzip", "x-gzip", "deflate"):
        # The name of a packing is a word; anything else would be a message.
        words = [layer for layer in layers[:3] if re.fullmatch("[a-z0-9-]{1,10}", layer)]
        named = ", ".join(words) or "something unknown"
        raise WebFault("encoding", f"the answer is packed as {named}, which was not asked for")
    return _Decompressor(is_gzip=layers[0] != "deflate")
