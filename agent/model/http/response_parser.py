"""Strict incremental parser for one HTTP/1.1 response, and the decoder of its body."""

import zlib
from collections.abc import Callable

from tooling.contract.lazy_pattern import lazy_pattern

MAX_HEAD_BYTES = 64 * 1024
_MAX_LINE_BYTES = 8 * 1024
_STATUS_LINE = lazy_pattern(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [^\x00-\x08\x0a-\x1f]*)?")
_HEADER = lazy_pattern(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*((?:[^\x00-\x08\x0a-\x1f]*[^\x00-\x20])?)[ \t]*")
_CHUNK_HEAD = lazy_pattern(rb"([0-9a-fA-F]{1,16})\r\n")
_CHUNK_SIZE = lazy_pattern(rb"([0-9a-fA-F]{1,16})[ \t]*(?:;[^\x00-\x08\x0a-\x1f]*)?\r")
_LENGTH = lazy_pattern(r"[0-9]{1,18}")
_BLANK_LINE = lazy_pattern(rb"\n\r?\n")
# gzip or zlib, detected by their first bytes.
_ANY_HEADER = 32 + zlib.MAX_WBITS
_MAX_STEP_BYTES = 1024 * 1024
_PLAIN = ("", "identity")
_COMPRESSED = ("gzip", "x-gzip", "deflate")


class ProtocolError(Exception):
    """The server does not speak HTTP/1.1."""


class IncompleteResponse(Exception):
    """The connection closed before the response was complete."""


class ResponseParser:
    """Turns bytes, split anywhere, into status, headers and body.

    After `is_complete`, no more bytes belong to the response; `can_reuse` is whether its connection may carry
    another request.
    """

    def __init__(self, method: str = "POST") -> None:
        self._method = method
        self._buffer = bytearray()
        self._parse: Callable[[list[bytes]], bool] = self._parse_head
        self._remaining = 0
        self._trailer_bytes = 0
        self.status = 0
        self.headers: dict[str, str] = {}
        self.is_head_complete = False
        self.is_complete = False
        self.can_reuse = False

    @property
    def has_started(self) -> bool:
        """Whether any byte of the response has arrived."""
        return self.is_head_complete or bool(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Parse bytes and return the pieces of the body they contain. Raises ProtocolError."""
        self._buffer += data
        pieces: list[bytes] = []
        while not self.is_complete and self._parse(pieces):
            pass
        if self.is_complete and self._buffer:
            # Bytes after the response answer no request.
            self.can_reuse = False
        return pieces

    def finish(self) -> None:
        """Handle the end of the connection. Raises IncompleteResponse if the response is not complete."""
        if self._parse == self._parse_until_closed:
            self.is_complete = True
        if not self.is_complete:
            raise IncompleteResponse

    def _parse_head(self, pieces: list[bytes]) -> bool:
        end = _BLANK_LINE.search(self._buffer)
        if (end.end() if end else len(self._buffer)) > MAX_HEAD_BYTES:
            raise ProtocolError(f"the response headers are larger than {MAX_HEAD_BYTES} bytes")
        if not end:
            # A server of another protocol may never send an empty line.
            if not b"HTTP/1.".startswith(self._buffer[:7]):
                raise ProtocolError(f"not an HTTP response: {bytes(self._buffer[:40])!r}")
            return False
        head = bytes(self._buffer[: end.start()])
        del self._buffer[: end.end()]
        self._read_head([line.removesuffix(b"\r") for line in head.split(b"\n")])
        return True

    def _read_head(self, lines: list[bytes]) -> None:
        first = _STATUS_LINE.fullmatch(lines[0])
        if not first:
            raise ProtocolError(f"not an HTTP response: {lines[0][:40]!r}")
        self.headers = {}
        for line in lines[1:]:
            header = _HEADER.fullmatch(line)
            if not header:
                raise ProtocolError(f"not an HTTP header: {line[:40]!r}")
            self._add_header(header[1].decode("ascii").lower(), header[2].decode("latin-1"))
        self.status = int(first[2])
        if 100 <= self.status < 200 and self.status != 101:
            # An interim response; the real one follows.
            return
        self.is_head_complete = True
        tokens = {token.strip().lower() for token in self.headers.get("connection", "").split(",")}
        self.can_reuse = first[1] == b"1" and "close" not in tokens
        self._choose_body()

    def _add_header(self, name: str, value: str) -> None:
        known = self.headers.get(name)
        if known is None or (name == "content-length" and known == value):
            self.headers[name] = value
        elif name in ("content-length", "transfer-encoding"):
            raise ProtocolError(f"contradictory {name} headers")
        else:
            self.headers[name] = f"{known}, {value}"

    def _choose_body(self) -> None:
        coding, length = self.headers.get("transfer-encoding"), self.headers.get("content-length")
        if coding is not None and coding.lower() != "chunked":
            raise ProtocolError(f"unknown transfer encoding {coding[:40]!r}")
        if length is not None and not _LENGTH.fullmatch(length):
            raise ProtocolError(f"invalid content length {length[:40]!r}")
        is_tunnel = self._method == "CONNECT" and 200 <= self.status < 300
        if is_tunnel or self._method == "HEAD" or self.status in (101, 204, 304):
            self.is_complete = True
        elif coding is not None:
            # A Content-Length in addition to it may be an attack on proxies (request smuggling).
            self.can_reuse = self.can_reuse and length is None
            self._parse = self._parse_chunks
        elif length is not None:
            self._remaining = int(length)
            self._parse = self._parse_sized
            self.is_complete = not self._remaining
        else:
            self.can_reuse = False
            self._parse = self._parse_until_closed

    def _parse_sized(self, pieces: list[bytes]) -> bool:
        self._take(pieces)
        self.is_complete = not self._remaining
        return False

    def _parse_until_closed(self, pieces: list[bytes]) -> bool:
        self._remaining = len(self._buffer)
        self._take(pieces)
        return False

    def _parse_chunks(self, pieces: list[bytes]) -> bool:
        """Take the chunks that have arrived completely, nearly all of them; then parse the next one part by part."""
        buffer, start = self._buffer, 0
        while head := _CHUNK_HEAD.match(buffer, start):
            begin = head.end()
            end = begin + int(head[1], 16)
            if begin == end or buffer[end : end + 2] != b"\r\n":
                break
            pieces.append(bytes(buffer[begin:end]))
            start = end + 2
        del buffer[:start]
        return self._parse_chunk_size(pieces)

    def _parse_chunk_size(self, pieces: list[bytes]) -> bool:
        line = self._take_line()
        if line is None:
            return False
        size = _CHUNK_SIZE.fullmatch(line)
        if not size:
            raise ProtocolError(f"not the size of a chunk: {line[:40]!r}")
        self._remaining = int(size[1], 16)
        self._parse = self._parse_chunk if self._remaining else self._parse_trailer
        return True

    def _parse_chunk(self, pieces: list[bytes]) -> bool:
        self._take(pieces)
        if not self._remaining:
            self._parse = self._parse_chunk_end
        return not self._remaining

    def _parse_chunk_end(self, pieces: list[bytes]) -> bool:
        line = self._take_line()
        if line not in (None, b"\r"):
            raise ProtocolError("a chunk is longer than its size")
        if line is not None:
            self._parse = self._parse_chunks
        return line is not None

    def _parse_trailer(self, pieces: list[bytes]) -> bool:
        line = self._take_line()
        if line is None:
            return False
        line = line.removesuffix(b"\r")
        self._trailer_bytes += len(line)
        if line and (not _HEADER.fullmatch(line) or self._trailer_bytes > MAX_HEAD_BYTES):
            raise ProtocolError(f"not an HTTP header: {line[:40]!r}")
        self.is_complete = not line
        return True

    def _take(self, pieces: list[bytes]) -> None:
        if piece := bytes(self._buffer[: self._remaining]):
            pieces.append(piece)
            del self._buffer[: len(piece)]
            self._remaining -= len(piece)

    def _take_line(self) -> bytes | None:
        end = self._buffer.find(b"\n")
        if max(end, 0 if end >= 0 else len(self._buffer)) > _MAX_LINE_BYTES:
            raise ProtocolError("a line between chunks is too long")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line


class BodyDecoder:
    """Decodes a body whose coding is named by its Content-Encoding header: feed it, then take until nothing is left.

    Some proxies compress replies without being asked.
    """

    def __init__(self, coding: str) -> None:
        coding = coding.strip().lower()
        if coding not in (*_PLAIN, *_COMPRESSED):
            raise ProtocolError(f"the reply is compressed with {coding!r}, which was not asked for")
        self._inflate = None if coding in _PLAIN else zlib.decompressobj(_ANY_HEADER)
        self._data = b""
        self._may_hold_more = False

    def feed(self, data: bytes) -> None:
        """Add the next piece of the body."""
        self._data += data

    def take(self) -> bytes:
        """Return the next decoded bytes, in small steps, since a few bytes may decode to very many."""
        data, self._data = self._data, b""
        if self._inflate is None or not (data or self._may_hold_more):
            return data
        try:
            decoded = self._inflate.decompress(data, _MAX_STEP_BYTES)
        except zlib.error as error:
            raise ProtocolError(f"the compressed reply is damaged: {error}") from error
        self._data = self._inflate.unconsumed_tail
        self._may_hold_more = len(decoded) == _MAX_STEP_BYTES
        return decoded

    def finish(self) -> None:
        """Raise ProtocolError if the body ended too early."""
        if self._inflate is not None and not self._inflate.eof:
            raise ProtocolError("the compressed reply is incomplete")
