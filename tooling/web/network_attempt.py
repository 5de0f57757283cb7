"""One try to reach the world, as the log tells it."""

from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAttempt:
    """Who was to be reached and whether that was allowed; an empty host means that no destination could be read."""

    host: str
    port: int
    allowed: bool
    reason: str
