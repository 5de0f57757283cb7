"""What a server answers on a connection; loads when the first request has been written."""

from collections.abc import Callable, Mapping
from types import TracebackType

from agent.model.faults import ModelFault
from agent.model.http.connection import Connection, describe_error
from agent.model.http.response_parser import BodyDecoder, IncompleteResponse, ProtocolError, ResponseParser


class _ProtocolFaults:
    """Turns what goes wrong on a connection into ModelFault; not a generator, because every chunk passes it."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        match error:
            case None | TimeoutError():
                return
            case ProtocolError():
                raise ModelFault("malformed", str(error)) from error
            case IncompleteResponse():
                raise ModelFault("reset", "the server closed the connection") from error
            case OSError():
                raise ModelFault("reset", describe_error(error)) from error


_protocol_faults = _ProtocolFaults()


class StreamResponse:
    """A response read from a connection, which goes back to the pool after its last byte."""

    def __init__(self, connection: Connection, method: str, release: Callable[[], None]) -> None:
        self._connection = connection
        self._release = release
        self._parser = ResponseParser(method)
        self._pieces: list[bytes] = []
        self._decoder = BodyDecoder("")
        self._is_closed = False
        self.status = 0
        self.headers: Mapping[str, str] = {}

    @property
    def has_started(self) -> bool:
        return self._parser.has_started

    @property
    def is_complete(self) -> bool:
        return self._parser.is_complete

    async def read_head(self) -> None:
        """Wait for status and headers."""
        with _protocol_faults:
            while not self._parser.is_head_complete:
                await self._receive()
            self.status, self.headers = self._parser.status, self._parser.headers
            self._decoder = BodyDecoder(self.headers.get("content-encoding", ""))

    async def read_chunk(self) -> bytes:
        with _protocol_faults:
            while not (data := self._decoder.take()):
                if self._pieces:
                    # Everything that has arrived at once: a provider may send a chunk for each word.
                    pieces, self._pieces = self._pieces, []
                    self._decoder.feed(b"".join(pieces))
                elif self._parser.is_complete:
                    self._decoder.finish()
                    return b""
                else:
                    await self._receive()
            return data

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._parser.is_complete and self._parser.can_reuse and self._connection.is_idle:
            self._release()
        else:
            await self._connection.close()

    async def _receive(self) -> None:
        if data := await self._connection.read():
            self._pieces += self._parser.feed(data)
        else:
            self._parser.finish()


async def open_tunnel(connection: Connection, target: str, proxy: str | None, headers: list[str]) -> None:
    """Ask a proxy to pass everything that follows to a server; raises OSError if it does not."""
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", *headers]
    connection.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    await connection.flush()
    parser = ResponseParser("CONNECT")
    while not parser.is_head_complete:
        data = await connection.read()
        try:
            parser.feed(data) if data else parser.finish()
        except (ProtocolError, IncompleteResponse) as error:
            raise ConnectionResetError(f"the proxy {proxy} did not open a tunnel") from error
    if not 200 <= parser.status < 300:
        raise ConnectionRefusedError(0, f"the proxy {proxy} answered {parser.status}")
