"""Requests, responses and faults of the web client, as plain values."""

import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.web.addresses.url_check import Target

# refused       the address is not public or not valid
# denied        a redirect to another host was not approved
# robots        robots.txt disallows the page, and the user wants that respected
# unknown_host  the name does not resolve
# unreachable   the connection failed
# tls           the connection cannot be trusted
# timeout       too slow, to connect or overall
# redirects     too many, a loop, or from https to http
# encoding      a compression that was not requested, or invalid data
# broken        not HTTP, or the response ended early
# malformed     the content is not what the caller expected
FaultKind: TypeAlias = Literal[
    "refused",
    "denied",
    "robots",
    "unknown_host",
    "unreachable",
    "tls",
    "timeout",
    "redirects",
    "encoding",
    "broken",
    "malformed",
]


class WebFault(Exception):
    """A request failed; the message is one sentence for the model or the user."""

    def __init__(self, kind: FaultKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


# Called before following a redirect to another host; returns the reason for refusing it, or None.
RedirectGate: TypeAlias = Callable[[Target], Awaitable[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    """A request.

    `is_trusted` marks an endpoint that the user configured: it may be on loopback or in a private network if its
    address says so, its redirects must stay on its origin, and its responses are not cached. Limits that are None come
    from the settings. Without `use_cache` the server is always contacted; the new response is still cached. Only a
    request that writes sends its `idempotency_key`.
    """

    url: str
    method: Literal["GET", "POST"] = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    is_trusted: bool = False
    timeout_s: float | None = None
    max_bytes: int | None = None
    gate: RedirectGate | None = None
    use_cache: bool = True
    idempotency_key: str = field(default_factory=lambda: secrets.token_hex(16), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResponse:
    """A response with a decompressed body and lower-case header names.

    `is_truncated` if the body exceeded the limit and only its beginning is here, `is_bomb` if it was a decompression
    bomb, `is_from_cache` if no server was contacted.
    """

    url: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_truncated: bool = False
    is_bomb: bool = False
    is_from_cache: bool = False

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """Return the body as UTF-8; for services that are known to use it."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> object:
        """Parse the body as JSON; raise WebFault if it is not."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise WebFault("malformed", not_json(self.url)) from error


def not_json(url: str) -> str:
    """Return the message for a response that is not JSON."""
    return f"{url} did not return JSON"
