"""The name a TLS client asks for, read from its first message without touching the encryption."""

MOST_HELLO_BYTES = 65_536

_HANDSHAKE_RECORD = 22
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_HOST_NAME = 0
_MOST_RECORD_BYTES = 16_384


class HelloInvalid(ValueError):
    """The first bytes of a tunnel are no TLS greeting, or a broken one."""


def server_name(data: bytes) -> str | None:
    """Return the server name in a ClientHello (empty when it has none), or None while bytes are missing."""
    message = _handshake(data)
    if message is None:
        return None
    fields = _Fields(message[4:])
    fields.take(2 + 32)
    for length_bytes in (1, 2, 1):
        fields.vector(length_bytes)
    if fields.is_empty:
        return ""
    extensions, names = _Fields(fields.vector(2)), []
    while not extensions.is_empty:
        kind, content = extensions.number(2), extensions.vector(2)
        if kind == _SERVER_NAME:
            names.append(_only_name(content))
    if len(names) > 1:
        raise HelloInvalid("the TLS greeting names several servers")
    return names[0] if names else ""


def _handshake(data: bytes) -> bytes | None:
    """Join the records of the first handshake message; None while it is incomplete."""
    message, at = b"", 0
    while len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4]):
        header = data[at : at + 5]
        if header and header[0] != _HANDSHAKE_RECORD:
            raise HelloInvalid("the tunnel does not begin with a TLS greeting")
        if len(header) > 1 and header[1] != 3:
            raise HelloInvalid("the TLS greeting is of an unknown version")
        size = int.from_bytes(header[3:5])
        if len(header) < 5 or len(data) < at + 5 + min(size, _MOST_RECORD_BYTES):
            return None
        if not 0 < size <= _MOST_RECORD_BYTES:
            raise HelloInvalid("the TLS greeting is broken")
        message += data[at + 5 : at + 5 + size]
        at += 5 + size
        if message[0] != _CLIENT_HELLO:
            raise HelloInvalid("the tunnel does not begin with a TLS greeting")
    return message[: 4 + int.from_bytes(message[1:4])]


def _only_name(content: bytes) -> str:
    entries = _Fields(_Fields(content).vector(2))
    kind, name = entries.number(1), entries.vector(2)
    if kind != _HOST_NAME or not entries.is_empty or not name.isascii():
        raise HelloInvalid("the TLS greeting names no single host")
    return name.decode("ascii").lower().removesuffix(".")


class _Fields:
    """Bytes that are taken from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_empty(self) -> bool:
        return self._at >= len(self._data)

    def take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise HelloInvalid("the TLS greeting is broken")
        self._at += count
        return found

    def number(self, length_bytes: int) -> int:
        return int.from_bytes(self.take(length_bytes))

    def vector(self, length_bytes: int) -> bytes:
        return self.take(self.number(length_bytes))
