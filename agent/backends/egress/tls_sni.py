"""Parses the server name in a TLS ClientHello (SNI), without decrypting anything."""

MAX_HELLO_BYTES = 65_536
NOT_TLS = "the tunnel does not start with a TLS ClientHello"
SEVERAL_SERVERS = "the TLS ClientHello names several servers"

_HANDSHAKE_RECORD = 22
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_HOST_NAME = 0
_MAX_RECORD_BYTES = 16_384


class ClientHelloError(ValueError):
    """The first bytes of a tunnel are not a valid TLS ClientHello."""


def parse_server_name(data: bytes) -> str | None:
    """Return the server name in a ClientHello ("" if it has none), or None while it is incomplete."""
    message = _join_handshake(data)
    if message is None:
        return None
    fields = _ByteReader(message[4:])
    fields.read(2 + 32)
    for length_bytes in (1, 2, 1):
        fields.read_vector(length_bytes)
    if fields.is_empty:
        return ""
    extensions, names = _ByteReader(fields.read_vector(2)), []
    while not extensions.is_empty:
        kind, content = extensions.read_int(2), extensions.read_vector(2)
        if kind == _SERVER_NAME:
            names.append(_parse_single_name(content))
    if len(names) > 1:
        raise ClientHelloError(SEVERAL_SERVERS)
    return names[0] if names else ""


def _join_handshake(data: bytes) -> bytes | None:
    """Join the records of the first handshake message; return None while it is incomplete."""
    message, at = b"", 0
    while len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4]):
        header = data[at : at + 5]
        if header and header[0] != _HANDSHAKE_RECORD:
            raise ClientHelloError(NOT_TLS)
        if len(header) > 1 and header[1] != 3:
            raise ClientHelloError("the TLS ClientHello has an unknown version")
        size = int.from_bytes(header[3:5])
        if len(header) < 5 or len(data) < at + 5 + min(size, _MAX_RECORD_BYTES):
            return None
        if not 0 < size <= _MAX_RECORD_BYTES:
            raise ClientHelloError("the TLS ClientHello is malformed")
        message += data[at + 5 : at + 5 + size]
        at += 5 + size
        if message[0] != _CLIENT_HELLO:
            raise ClientHelloError(NOT_TLS)
    return message[: 4 + int.from_bytes(message[1:4])]


def _parse_single_name(content: bytes) -> str:
    entries = _ByteReader(_ByteReader(content).read_vector(2))
    kind, name = entries.read_int(1), entries.read_vector(2)
    if kind != _HOST_NAME or not entries.is_empty or not name.isascii():
        raise ClientHelloError("the TLS ClientHello does not name a single host")
    return name.decode("ascii").lower().removesuffix(".")


class _ByteReader:
    """Reads bytes from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_empty(self) -> bool:
        return self._at >= len(self._data)

    def read(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise ClientHelloError("the TLS ClientHello is malformed")
        self._at += count
        return found

    def read_int(self, length_bytes: int) -> int:
        return int.from_bytes(self.read(length_bytes))

    def read_vector(self, length_bytes: int) -> bytes:
        return self.read(self.read_int(length_bytes))
