"""The parser of HTTP responses: what it reads, what it refuses, and h11 as the oracle for both."""

from dataclasses import dataclass
from itertools import pairwise

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model.http.response_parser import MAX_HEAD_BYTES, IncompleteResponse, ProtocolError, ResponseParser

OK = b"HTTP/1.1 200 OK\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a parser made of a response."""

    status: int
    body: bytes
    is_complete: bool


def parse(*parts: bytes, method: str = "POST") -> tuple[ResponseParser, bytes]:
    parser, body = ResponseParser(method), b""
    for part in parts:
        body += b"".join(parser.feed(part))
    return parser, body


def by_us(data: bytes, cuts: list[int]) -> Parsed | None:
    """Parse a response in pieces up to the end of the connection, None if it is refused."""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    parser, body = ResponseParser(), b""
    try:
        for start, end in pairwise(edges):
            body += b"".join(parser.feed(data[start:end]))
        parser.finish()
    except ProtocolError:
        return None
    except IncompleteResponse:
        pass
    return Parsed(status=parser.status, body=body, is_complete=parser.is_complete)


def by_h11(data: bytes) -> Parsed | None:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
    connection.send(h11.Request(method="POST", target="/", headers=[("Host", "x"), ("Content-Length", "0")]))
    connection.send(h11.EndOfMessage())
    status, body, is_complete = 0, b"", False
    try:
        connection.receive_data(data)
        connection.receive_data(b"")
        while not is_complete:
            match connection.next_event():
                case h11.InformationalResponse():
                    pass
                case h11.Response(status_code=status):
                    pass
                case h11.Data(data=piece):
                    body += bytes(piece)
                case h11.EndOfMessage():
                    is_complete = True
                case _:
                    break
    except h11.RemoteProtocolError as error:
        if "without sending complete" not in str(error):
            return None
    return Parsed(status=status, body=body, is_complete=is_complete)


def test_a_response_with_a_length_is_read_and_its_connection_reusable() -> None:
    parser, body = parse(OK + b"Content-Type: text/plain\r\ncontent-length:  5 \r\n\r\nhello")
    assert (parser.status, body, parser.is_complete, parser.can_reuse) == (200, b"hello", True, True)
    assert parser.headers == {"content-type": "text/plain", "content-length": "5"}


def test_chunks_are_returned_as_they_arrive_without_their_frames() -> None:
    parser, body = parse(
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r", b"\nhel", b"lo\r\n3;x=y\r\n, w\r\n0\r\nT: 1\r\n\r\n"
    )
    assert (body, parser.is_complete, parser.can_reuse) == (b"hello, w", True, True)


def test_a_response_without_length_ends_with_the_connection() -> None:
    parser, body = parse(OK + b"\r\nall of ", b"it")
    assert (body, parser.is_complete) == (b"all of it", False)
    parser.finish()
    assert (parser.is_complete, parser.can_reuse) == (True, False)


def test_interim_responses_are_skipped() -> None:
    parser, body = parse(b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok")
    assert (parser.status, body, parser.headers) == (200, b"ok", {"content-length": "2"})


@pytest.mark.parametrize("status", [204, 304])
def test_some_responses_have_no_body(status: int) -> None:
    parser, body = parse(b"HTTP/1.1 %d No\r\nContent-Length: 7\r\n\r\n" % status)
    assert (parser.is_complete, body) == (True, b"")


def test_an_open_tunnel_has_no_body() -> None:
    assert parse(OK + b"\r\n", method="CONNECT")[0].is_complete
    assert not parse(b"HTTP/1.1 407 No\r\n\r\n", method="CONNECT")[0].is_complete


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        OK + b"Connection: keep-alive, Close\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_a_connection_that_the_server_will_close_is_not_reused(head: bytes) -> None:
    parser, _ = parse(head)
    assert (parser.is_complete, parser.can_reuse) == (True, False)


def test_a_connection_with_bytes_after_the_response_is_not_reused() -> None:
    parser, body = parse(OK + b"Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n")
    assert (body, parser.can_reuse) == (b"ok", False)


def test_a_length_beside_chunks_is_ignored_and_the_connection_not_reused() -> None:
    parser, body = parse(OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
    assert (body, parser.can_reuse) == (b"ok", False)


def test_repeated_headers_are_joined() -> None:
    assert parse(OK + b"Via: a\r\nVia: b\r\n\r\n")[0].headers["via"] == "a, b"


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 600 X\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        OK + b"No colon\r\n\r\n",
        OK + b"Sp ace: x\r\n\r\n",
        OK + b": x\r\n\r\n",
        OK + b"A: b\r\n folded\r\n\r\n",
        OK + b"A: b\x00c\r\n\r\n",
        OK + b"A: b\rc\r\n\r\n",
        OK + b"Content-Length: 2, 2\r\n\r\n",
        OK + b"Content-Length: +2\r\n\r\n",
        OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n",
        OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0x5\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 9000,
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"T: 1\r\n" * 40_000,
        OK + b"A: " + b"x" * MAX_HEAD_BYTES,
    ],
)
def test_what_is_not_http_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse(data)


@pytest.mark.parametrize(
    "data", [b"", b"HTTP/1.1 2", OK + b"Content-Length: 3\r\n\r\nab", OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab"]
)
def test_a_connection_that_ends_too_early_is_noticed(data: bytes) -> None:
    parser, _ = parse(data)
    assert parser.has_started == bool(data)
    with pytest.raises(IncompleteResponse):
        parser.finish()


bodies = st.lists(st.binary(min_size=1, max_size=40), max_size=5)
cuts = st.lists(st.integers(min_value=0, max_value=10_000), max_size=8)


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """A correct response with a body in any of the three forms."""
    pieces = draw(bodies)
    status = draw(st.sampled_from((200, 200, 204, 304, 404, 500)))
    extra = b"".join(draw(st.lists(st.sampled_from((b"X-A: 1\r\n", b"x-b:2\r\n", b"Server:\r\n")), max_size=3)))
    interim = draw(st.sampled_from((b"", b"", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")))
    head = interim + b"HTTP/1.1 %d X\r\n" % status + extra
    match draw(st.sampled_from(("length", "chunks", "close"))):
        case "length":
            body = b"".join(pieces)
            return head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        case "chunks":
            framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
            return head + b"Transfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"
        case _:
            return head + b"\r\n" + b"".join(pieces)


@given(responses(), cuts)
def test_correct_responses_are_read_as_h11_reads_them_however_they_are_split(data: bytes, cuts: list[int]) -> None:
    ours = by_us(data, cuts)
    assert ours is not None
    assert ours == by_h11(data)
    assert ours.is_complete


@given(
    responses(),
    st.lists(st.tuples(st.integers(min_value=0, max_value=300), st.integers(min_value=0, max_value=255)), max_size=4),
    st.integers(min_value=0, max_value=300),
    cuts,
)
def test_a_damaged_response_is_refused_or_read_as_h11_reads_it(
    data: bytes, changes: list[tuple[int, int]], length: int, cuts: list[int]
) -> None:
    damaged = bytearray(data[: len(data) - length % (len(data) + 1)] if length % 3 == 0 else data)
    for at, byte in changes:
        if damaged:
            damaged[at % len(damaged)] = byte
    ours, theirs = by_us(bytes(damaged), cuts), by_h11(bytes(damaged))
    if ours and ours.is_complete:
        assert ours == theirs
