"""HTTP heads at the egress proxy: which are refused, and how the others are rewritten."""

from http import HTTPStatus

import pytest

from agent.backends.egress.proxy_http import (
    ProxyHttpError,
    build_error_response,
    build_request_head,
    parse_request,
    rewrite_response_head,
)
from tooling.web.addresses.url_check import parse_url

FIRST = b"POST http://example.test/a?b=1 HTTP/1.1\r\n"


def head(*lines: bytes, first: bytes = FIRST) -> bytes:
    return first + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


@pytest.mark.parametrize(
    "lines",
    [
        (b"Content-Length: 5", b"Content-Length: 6"),
        (b"Content-Length: 5", b"Content-Length: 5"),
        (b"Content-Length: 5, 5",),
        (b"Content-Length: +5",),
        (b"Content-Length: -5",),
        (b"Content-Length: 0x5",),
        (b"Content-Length: 5 5",),
        (b"Content-Length: \xb2",),
        (b"Content-Length:",),
        (b"Content-Length: 9999999999999999",),
        (b"Content-Length: 5", b"Transfer-Encoding: chunked"),
        (b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
        (b"Transfer-Encoding: gzip, chunked",),
        (b"Transfer-Encoding: chunked, identity",),
        (b"Transfer-Encoding: identity",),
        (b"Transfer-Encoding: xchunked",),
        (b"Transfer-Encoding : chunked",),
        (b" Transfer-Encoding: chunked",),
        (b"X: 1", b" folded"),
        (b"X: 1\nTransfer-Encoding: chunked",),
        (b"X: 1\rTransfer-Encoding: chunked",),
        (b"X: a\0b",),
        (b"no colon",),
        (b": no name",),
        (b"Host: a.test", b"Host: b.test"),
        tuple(b"X-%d: 1" % number for number in range(101)),
    ],
    ids=repr,
)
def test_ambiguous_requests_are_refused(lines: tuple[bytes, ...]) -> None:
    with pytest.raises(ProxyHttpError):
        parse_request(head(*lines))


@pytest.mark.parametrize(
    "first",
    [
        b"GET http://example.test/\r\n",
        b"GET  http://example.test/ HTTP/1.1\r\n",
        b"GET http://example.test/ HTTP/2.0\r\n",
        b"GET http://example.test/ HTTP/1.1 \r\n",
        b"GET http://example.test/a b HTTP/1.1\r\n",
        b"GET http://example.test/\xe4 HTTP/1.1\r\n",
        b"G(T http://example.test/ HTTP/1.1\r\n",
        b" GET http://example.test/ HTTP/1.1\r\n",
        b"\r\n",
        b"\x16\x03\x01\r\n",
    ],
)
def test_malformed_request_lines_are_refused(first: bytes) -> None:
    with pytest.raises(ProxyHttpError):
        parse_request(head(first=first))


def test_http_1_0_requests_cannot_be_chunked() -> None:
    with pytest.raises(ProxyHttpError):
        parse_request(head(b"Transfer-Encoding: chunked", first=b"POST http://example.test/ HTTP/1.0\r\n"))


def test_the_server_gets_its_own_host_and_a_single_content_length() -> None:
    request = parse_request(
        head(
            b"Host: other.test",
            b"X-Kept:  yes ",
            b"Proxy-Authorization: Basic secret",
            b"Proxy-Connection: keep-alive",
            b"Connection: keep-alive, X-Dropped, Content-Length, Host",
            b"X-Dropped: 1",
            b"Upgrade: websocket",
            b"TE: trailers",
            b"content-length: 05",
        )
    )
    assert build_request_head(request, parse_url(request.target)) == (
        b"POST /a?b=1 HTTP/1.1\r\nHost: example.test\r\nX-Kept: yes\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
    )


def test_a_chunked_request_stays_chunked() -> None:
    request = parse_request(head(b"transfer-encoding: Chunked"))
    assert build_request_head(request, parse_url(request.target)) == (
        b"POST /a?b=1 HTTP/1.1\r\nHost: example.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )


def test_the_response_closes_the_connection() -> None:
    answer = b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: 5\r\nContent-Length: 2\r\nX: 1\r\n\r\n"
    assert rewrite_response_head(answer) == (
        200,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: 1\r\nConnection: close\r\n\r\n",
    )
    assert rewrite_response_head(b"HTTP/1.1 100 Continue\r\n\r\n") == (100, b"HTTP/1.1 100 Continue\r\n\r\n")


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 999 x\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbroken\r\n\r\n",
        b"HTTP/1.1 200 a\nb\r\n\r\n",
    ],
)
def test_malformed_responses_are_refused(answer: bytes) -> None:
    with pytest.raises(ProxyHttpError):
        rewrite_response_head(answer)


def test_an_error_response_cannot_be_injected_into() -> None:
    first, _, rest = build_error_response(HTTPStatus.FORBIDDEN, "bad\r\nX-Injected: 1 \u2028ü").partition(b"\r\n")
    assert first == b"HTTP/1.1 403 badX-Injected: 1 "
    assert rest.startswith(b"Content-Type: text/plain")
