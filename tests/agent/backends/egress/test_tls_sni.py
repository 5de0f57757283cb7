"""Parsing the server name in a TLS ClientHello."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.backends.egress.tls_sni import SEVERAL_SERVERS, ClientHelloError, parse_server_name


def hello(host: str | None) -> bytes:
    """Return the ClientHello of a real client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=host)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def split_records(data: bytes, size: int) -> bytes:
    """Return the same message in many small records."""
    parts = [data[5:][at : at + size] for at in range(0, len(data) - 5, size)]
    return b"".join(data[:3] + len(part).to_bytes(2) + part for part in parts)


@pytest.mark.parametrize(("host", "name"), [("example.test", "example.test"), ("EXAMPLE.test", "example.test")])
def test_the_name_in_a_real_client_hello_is_parsed(host: str, name: str) -> None:
    assert parse_server_name(hello(host)) == name
    assert parse_server_name(hello(host) + b"early data that follows") == name


def test_a_client_hello_without_a_name_gives_an_empty_one() -> None:
    assert parse_server_name(hello(None)) == ""


def test_an_incomplete_client_hello_gives_none() -> None:
    full = hello("example.test")
    assert [parse_server_name(full[:size]) for size in range(len(full))] == [None] * len(full)


@pytest.mark.parametrize("size", [1, 3, 50, 200])
def test_a_client_hello_in_several_records_is_joined(size: int) -> None:
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
def test_other_bytes_are_an_error(data: bytes) -> None:
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
    # The length of all extensions comes right before the first of them.
    sizes = 5 + 4 + 34
    sizes += 1 + bigger[sizes]
    sizes += 2 + int.from_bytes(bigger[sizes : sizes + 2])
    sizes += 1 + bigger[sizes]
    grown = int.from_bytes(bigger[sizes : sizes + 2]) + len(extension)
    bigger[sizes : sizes + 2] = grown.to_bytes(2)
    with pytest.raises(ClientHelloError, match=SEVERAL_SERVERS):
        parse_server_name(bytes(bigger))


@given(st.binary(max_size=300), st.integers(0, 400))
def test_arbitrary_bytes_raise_nothing_else(noise: bytes, at: int) -> None:
    full = hello("example.test")
    for data in (noise, b"\x16\x03\x01" + noise, full[:at] + noise + full[at:], full[:at] + noise):
        try:
            found = parse_server_name(data)
        except ClientHelloError:
            continue
        assert found is None or isinstance(found, str)
