"""One request to the web and its answer as plain values, and every way it can fail."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.web.addresses.url_check import Target

# refused       the address is not public, or not an address at all
# denied        somebody said no to the host that a redirect leads to
# robots        the site asks robots to stay away, and the user wants that heeded
# unknown_host  the name has no address
# unreachable   nobody listens there
# tls           the connection cannot be trusted
# timeout       too slow, to connect or in all
# redirects     too many, in a circle, or from https to http
# encoding      packed in a way that was not asked for, or broken
# broken        the answer is no HTTP, or ended too early
# malformed     the answer is not what its reader expected
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
    """A request that brought no answer; the words are one sentence for a model or a person."""

    def __init__(self, kind: FaultKind, words: str) -> None:
        super().__init__(words)
        self.kind = kind


# Asked before a redirect to another host is followed; returns why not, or None.
RedirectGate: TypeAlias = Callable[[Target], Awaitable[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    """What is asked for.

    `is_trusted` marks an endpoint that the user configured: it may be on loopback or in a private network when its
    address says so, its redirects stay on its origin, and its answers are not cached. Limits left out are those of the
    settings. `use_cache` allows an answer that was kept; without it a new one is asked for, and kept again.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResponse:
    """What came back, unpacked; header names are in small letters.

    `is_cut` says that the body was longer than allowed and this is its beginning; `is_bomb` that it was packed to
    burst: so small and so large that nobody writes pages like that; `is_from_cache` that nobody was asked.
    """

    url: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_cut: bool = False
    is_bomb: bool = False
    is_from_cache: bool = False

    @property
    def is_ok(self) -> bool:
        """Say whether the server gave what was asked for."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """Return the body as UTF-8; for services that are known to speak it."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> object:
        """Return the body as JSON, or raise WebFault."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise WebFault("malformed", f"{self.url} did not answer with JSON") from error
