"""Waiting for a session that another process runs in: with a word about who holds it, and not for ever."""

import time
from collections.abc import Callable

from agent.sessions.store import SessionFolder, SessionLock
from agent.vocabulary.errors import SessionBusy
from tooling.contract.fast_dataclass import dataclass

_POLL_S = 0.05
# A listing that looks whether somebody runs here holds the lock for a moment; that is nobody to give up for.
_GLANCE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for a session, None for ever, and who is told that it takes a while."""

    limit_s: float | None = 0.0
    tell: Callable[[str], None] = lambda message: None


def lock_within(folder: SessionFolder, patience: Patience) -> SessionLock:
    """Return the lock of a session as soon as it is free, or raise SessionBusy when that takes too long."""
    start = time.monotonic()
    has_told = False
    while True:
        try:
            return SessionLock(folder)
        except SessionBusy as busy:
            waited = time.monotonic() - start
            if patience.limit_s is not None and waited >= max(patience.limit_s, _GLANCE_S):
                raise
            if not has_told and waited >= _GLANCE_S:
                patience.tell(f"{busy.message}; waiting for it to end")
                has_told = True
        # A lock has no wait with a time limit; a signal ends the sleep at once.
        time.sleep(_POLL_S)
