"""The HTTP subset of the egress proxy: strict parsing, rewritten heads, one request per connection."""

import re
from http import HTTPStatus
from typing import Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.web.addresses.url_check import Target

MAX_HEADERS = 100

Framing: TypeAlias = int | Literal["chunked"]
Headers: TypeAlias = tuple[tuple[str, str], ...]

_TOKEN = lazy_pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_VALUE = lazy_pattern(r"[\t\x20-\x7e\x80-\xff]*")
_TARGET = lazy_pattern(r"[\x21-\x7e]+")
_STATUS = lazy_pattern(r"HTTP/1\.[01] ([1-5][0-9][0-9])(?: .*)?", re.ASCII)
# Valid between client and proxy only; the framing headers are written again from the parsed values.
_HOP_BY_HOP = frozenset(
    {"connection", "proxy-connection", "keep-alive", "proxy-authorization", "proxy-authenticate", "te", "trailer"}
    | {"upgrade", "http2-settings", "proxy-authentication-info"}
)
_REWRITTEN = _HOP_BY_HOP | {"host", "content-length", "transfer-encoding"}


class ProxyHttpError(Exception):
    """A message that is refused, with the status of the error response."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to the proxy."""

    method: str
    target: str
    version: str
    headers: Headers
    framing: Framing


def parse_request(head: bytes) -> Request:
    """Parse a request head that ends in an empty line; refuse what two servers might parse differently."""
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, _, rest = first.partition(" ")
    target, _, version = rest.partition(" ")
    if not _TOKEN.fullmatch(method) or not _TARGET.fullmatch(target) or version not in ("HTTP/1.0", "HTTP/1.1"):
        raise ProxyHttpError(HTTPStatus.BAD_REQUEST, "this is not an HTTP request")
    headers = _headers(lines, HTTPStatus.BAD_REQUEST)
    if len(_values(headers, "host")) > 1:
        raise ProxyHttpError(HTTPStatus.BAD_REQUEST, "the request has more than one Host header")
    framing = _framing(headers, version)
    return Request(method=method, target=target, version=version, headers=headers, framing=framing)


def build_request_head(request: Request, target: Target) -> bytes:
    """Return the head for the server: its path and Host, the same framing, and `Connection: close`."""
    dropped = _REWRITTEN | _connection_options(request.headers)
    lines = [f"{request.method} {target.path} {request.version}", f"Host: {target.authority}"]
    lines += [f"{name}: {value}" for name, value in request.headers if name.lower() not in dropped]
    if request.framing == "chunked":
        lines.append("Transfer-Encoding: chunked")
    elif _values(request.headers, "content-length"):
        lines.append(f"Content-Length: {request.framing}")
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


def rewrite_response_head(head: bytes) -> tuple[int, bytes]:
    """Return the status of a response, and its head for the client."""
    first, *rest = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    found = _STATUS.fullmatch(first)
    if found is None or not _VALUE.fullmatch(first):
        raise ProxyHttpError(HTTPStatus.BAD_GATEWAY, "the server did not respond in HTTP")
    headers = _headers(rest, HTTPStatus.BAD_GATEWAY)
    status = int(found[1])
    if status == HTTPStatus.SWITCHING_PROTOCOLS:
        raise ProxyHttpError(HTTPStatus.BAD_GATEWAY, "the server switched to another protocol")
    dropped = _HOP_BY_HOP | _connection_options(headers)
    lines = [f"{name}: {value}" for name, value in headers if name.lower() not in dropped]
    last = ["Connection: close"] if status >= HTTPStatus.OK else []
    return status, "\r\n".join([first, *lines, *last, "", ""]).encode("latin-1")


def build_error_response(status: HTTPStatus, reason: str) -> bytes:
    """Return an error response; the reason is also in the status line, which is all that pip and npm show."""
    words = "".join(char for char in reason if char.isascii() and char.isprintable())[:200]
    body = f"{reason}\n".encode()
    head = (
        f"HTTP/1.1 {int(status)} {words}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body


def _headers(lines: list[str], status: HTTPStatus) -> Headers:
    if len(lines) > MAX_HEADERS:
        raise ProxyHttpError(status, "the message has too many headers")
    found = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ProxyHttpError(status, "the message has a malformed header")
        found.append((name, value.strip(" \t")))
    return tuple(found)


def _framing(headers: Headers, version: str) -> Framing:
    lengths, codings = _values(headers, "content-length"), _values(headers, "transfer-encoding")
    if codings:
        if lengths or version == "HTTP/1.0" or [coding.lower() for coding in codings] != ["chunked"]:
            raise ProxyHttpError(HTTPStatus.BAD_REQUEST, "the length of the request is ambiguous")
        return "chunked"
    if not lengths:
        return 0
    length = lengths[0]
    if len(lengths) > 1 or not (length.isascii() and length.isdigit()) or len(length) > 15:
        raise ProxyHttpError(HTTPStatus.BAD_REQUEST, "the length of the request is ambiguous")
    return int(length)


def _connection_options(headers: Headers) -> frozenset[str]:
    named = {word.strip().lower() for value in _values(headers, "connection") for word in value.split(",")}
    # The framing headers are always kept.
    return frozenset(named) - {"content-length", "transfer-encoding"}


def _values(headers: Headers, name: str) -> list[str]:
    return [value for key, value in headers if key.lower() == name]
