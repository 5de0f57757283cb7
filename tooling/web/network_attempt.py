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


# Takes an attempt; what it returns, if anything, is done when the attempt is stored.
OnAttempt: TypeAlias = Callable[[NetworkAttempt], Awaitable[None] | None]
