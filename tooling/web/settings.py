"""What a person may say about how tools use the web."""

from collections.abc import Mapping
from dataclasses import dataclass, field

CONNECT_TIMEOUT_S = 5.0
TIMEOUT_S = 30.0
MAX_BYTES = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """Limits and choices of all requests that tools make; `keys` are by the name of the service."""

    allow_loopback: bool = False
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    timeout_s: float = TIMEOUT_S
    max_bytes: int = MAX_BYTES
    user_agent: str = "Mozilla/5.0 (compatible; windlass)"
    keys: Mapping[str, str] = field(default_factory=dict)
