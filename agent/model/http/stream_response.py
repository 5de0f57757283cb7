"""What a server answers on a connection; loads when the first request has been written."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from agent.model.faults import ModelFault
from agent.model.http.connection import Connection, describe_error
from agent.model.http.response_parser import BodyDecoder, IncompleteResponse, ProtocolError, ResponseParser


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

    async def read_head(self) -> None:
        """Wait for status and headers."""
        while not self._parser.is_head_complete:
            await self._receive()
        self.status, self.headers = self._parser.status, self._parser.headers
        with _protocol_faults():
            self._decoder = BodyDecoder(self.headers.get("content-encoding", ""))

    async def read_chunk(self) -> bytes:
        with _protocol_faults():
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
        with _protocol_faults():
            if data := await self._connection.read():
                self._pieces += self._parser.feed(data)
            else:
                self._parser.finish()


@contextmanager
def _protocol_faults() -> Iterator[None]:
    try:
        yield
    except ProtocolError as error:
        raise ModelFault("malformed", str(error)) from error
    except IncompleteResponse as error:
        raise ModelFault("reset", "the server closed the connection") from error
    except TimeoutError:
        raise
    except OSError as error:
        raise ModelFault("reset", describe_error(error)) from error


async def open_tunnel(connection: Connection, target: str, proxy: str | None, headers: list[str]) -> None:
    """Ask a proxy to pass everything that follows to a server; raises OSError if it does not."""
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", *headers]
    await connection.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    parser = ResponseParser("CONNECT")
    while not parser.is_head_complete:
        data = await connection.read()
        try:
            parser.feed(data) if data else parser.finish()
        except (ProtocolError, IncompleteResponse) as error:
            raise ConnectionResetError(f"the proxy {proxy} did not open a tunnel") from error
    if not 200 <= parser.status < 300:
        raise ConnectionRefusedError(0, f"the proxy {proxy} answered {parser.status}")
