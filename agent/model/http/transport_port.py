"""The port between an exchange and the network."""

from collections.abc import Callable, Mapping
from typing import Protocol

from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request, complete."""

    url: str
    headers: Mapping[str, str]
    content: bytes = b""
    method: str = "POST"


@dataclass(frozen=True, slots=True, kw_only=True)
class SendLimits:
    """Time limits of connecting and writing, in seconds."""

    connect_s: float
    write_s: float


class HttpResponse(Protocol):
    """A response whose body is still to be read; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]

    @property
    def is_complete(self) -> bool:
        """Whether the whole body is known to have arrived."""
        ...

    async def read_chunk(self) -> bytes:
        """Return the next part of the body, empty at its end. Raises ModelFault."""
        ...

    async def close(self) -> None:
        """Return the connection to the pool, or close it if the body was not read completely."""
        ...


class Transport(Protocol):
    """Sends requests; raises only ModelFault, and TimeoutError if writing takes too long."""

    async def send(self, request: HttpRequest, limits: SendLimits, on_sent: Callable[[], None]) -> HttpResponse:
        """Send a request, call `on_sent` when it is written, and return the response."""
        ...

    async def close(self) -> None:
        """Close all connections; may be called twice."""
        ...
