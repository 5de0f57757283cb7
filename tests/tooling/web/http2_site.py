"""A loopback site that speaks only HTTP/2 over TLS."""

import asyncio
import ssl

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived


class Http2Site:
    """Responds to every request with the same text; counts connections and records authorities."""

    def __init__(self, tls: ssl.SSLContext, text: bytes) -> None:
        tls.set_alpn_protocols(["h2"])
        self._tls = tls
        self._text = text
        self.connections = 0
        self.authorities: list[str] = []

    async def __aenter__(self) -> "Http2Site":
        self._server = await asyncio.start_server(self._handle_connection, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        try:
            while data := await reader.read(65_536):
                for event in connection.receive_data(data):
                    if isinstance(event, RequestReceived):
                        self.authorities.append(dict(event.headers)[":authority"])
                        kind = ("content-type", "text/plain")
                        connection.send_headers(event.stream_id, [(":status", "200"), kind])
                        connection.send_data(event.stream_id, self._text, end_stream=True)
                writer.write(connection.data_to_send())
                await writer.drain()
        except OSError:
            # The client disconnected.
            pass
        finally:
            writer.close()
