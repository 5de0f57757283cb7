"""Reading the server name from the first bytes of a TLS client."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.backends.egress.tls_sni import ClientHelloError, parse_server_name


def hello(host: str | None) -> bytes:
    """Return what a real client says first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=host)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def split_records(data: bytes, size: int) -> bytes:
    """Say the same in many small records."""
    parts = [data[5:][at : at + size] for at in range(0, len(data) - 5, size)]
    return b"".join(data[:3] + len(part).to_bytes(2) + part for part in parts)


@pytest.mark.parametrize(("host", "name"), [("example.test", "example.test"), ("EXAMPLE.test", "example.test")])
def test_the_name_of_a_real_client_is_read(host: str, name: str) -> None:
    assert parse_server_name(hello(host)) == name
    assert parse_server_name(hello(host) + b"early data that follows") == name


def test_a_client_without_a_name_is_seen_as_such() -> None:
    assert parse_server_name(hello(None)) == ""


def test_every_beginning_of_a_greeting_is_waited_for() -> None:
    whole = hello("example.test")
    assert [parse_server_name(whole[:size]) for size in range(len(whole))] == [None] * len(whole)


@pytest.mark.parametrize("size", [1, 3, 50, 200])
def test_a_greeting_in_several_records_is_joined(size: int) -> None:
    pieces = split_records(hello("example.test"), size)
    assert parse_server_name(pieces) == "example.test"
    assert parse_server_name(pieces[:-1]) is None


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"SSH-2.0-OpenSSH_9\r\n",
        b"\x80\x2e\x01\x03\x01",
        b"\x15\x03\x01\x00\x02\x02\x28",
        b"\x16\x02\x01\x00\x02\x02\x28",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\xff\xff" + b"\x01" * 20_000,
        b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
        b"\x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03",
    ],
    ids=repr,
)
def test_other_bytes_are_no_greeting(data: bytes) -> None:
    with pytest.raises(ClientHelloError):
        parse_server_name(data)


def test_two_names_are_refused() -> None:
    data = hello("example.test")
    at = data.index(b"\x00\x00" + (len("example.test") + 5).to_bytes(2))
    extension = data[at : at + 4 + len("example.test") + 5]
    bigger = bytearray(data[:at] + extension + data[at:])
    for offset, size in ((3, 2), (6, 3)):
        grown = int.from_bytes(bigger[offset : offset + size]) + len(extension)
        bigger[offset : offset + size] = grown.to_bytes(size)
    # The length of all extensions stands right before the first of them.
    sizes = 5 + 4 + 34
    sizes += 1 + bigger[sizes]
    sizes += 2 + int.from_bytes(bigger[sizes : sizes + 2])
    sizes += 1 + bigger[sizes]
    grown = int.from_bytes(bigger[sizes : sizes + 2]) + len(extension)
    bigger[sizes : sizes + 2] = grown.to_bytes(2)
    with pytest.raises(ClientHelloError, match="several servers"):
        parse_server_name(bytes(bigger))


@given(st.binary(max_size=300), st.integers(0, 400))
def test_broken_bytes_never_break_the_reader(noise: bytes, at: int) -> None:
    whole = hello("example.test")
    for data in (noise, b"\x16\x03\x01" + noise, whole[:at] + noise + whole[at:], whole[:at] + noise):
        try:
            found = parse_server_name(data)
        except ClientHelloError:
            continue
        assert found is None or isinstance(found, str)
