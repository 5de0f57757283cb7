"""An event loop whose clock is wound by hand: waiting takes no time, and waiting for nothing is found out."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class Deadlock(AssertionError):
    """Everybody waits, and nothing will ever happen."""


class _Winder(selectors.SelectSelector):
    """Instead of sleeping until the next timer, sets the clock to it."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if ready := super().select(0):
            return ready
        if timeout is None:
            raise Deadlock
        self.now += max(0.0, timeout)
        return []


class HandWoundLoop(asyncio.SelectorEventLoop):
    """A loop for tests of what takes long."""

    def __init__(self) -> None:
        self._winder = _Winder()
        super().__init__(self._winder)

    def time(self) -> float:
        return self._winder.now


def run_by_hand(work: Coroutine[None, None, T]) -> T:
    """Run to the end, in no time at all."""
    with asyncio.Runner(loop_factory=HandWoundLoop) as runner:
        return runner.run(work)
