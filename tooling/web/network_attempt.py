"""One network attempt, for the log."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAttempt:
    """The destination of an attempt and the verdict; the host is empty if no destination could be parsed."""

    host: str
    port: int
    allowed: bool
    reason: str


# Receives an attempt; returns an awaitable that is done when the attempt is stored, or None.
OnAttempt: TypeAlias = Callable[[NetworkAttempt], Awaitable[None] | None]
