"""An event loop whose clock is wound by hand: waiting takes no time, and waiting for nothing is found out."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class Deadlock(AssertionError):
    """Everybody waits, and nothing will ever happen."""


class _VirtualSelector(selectors.SelectSelector):
    """Instead of sleeping until the next timer, sets the clock to it."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if ready := super().select(0):
            return ready
        if timeout is None:
            raise Deadlock
        self.now += max(0.0, timeout)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop for tests of what takes long."""

    def __init__(self) -> None:
        self._virtual_selector = _VirtualSelector()
        super().__init__(self._virtual_selector)

    def time(self) -> float:
        return self._virtual_selector.now


def run_in_virtual_time(work: Coroutine[None, None, T]) -> T:
    """Run to the end, in no time at all."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)
