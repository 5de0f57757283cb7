"""What the person wishes of steps at work: words they hear before their next turn, and an end before their time."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from agent.protocol.commands import Steer, StopStep

_Result = TypeVar("_Result")


class StepControl:
    """Takes wishes in at any time and hands each to the steps it concerns, once."""

    def __init__(self) -> None:
        self._messages: list[Steer] = []
        self._delivered: dict[str, int] = {}
        self._running: dict[str, Callable[[], bool]] = {}
        self._stopped: set[str] = set()

    def steer(self, wish: Steer) -> bool:
        """Keep words for one step, or for all of the run from now on; False when that step is not at work."""
        if wish.step_id is not None and wish.step_id not in self._running:
            return False
        self._messages.append(wish)
        return True

    def stop(self, wish: StopStep) -> bool:
        """End one step; False when it is not at work."""
        cancel = self._running.get(wish.step_id)
        if cancel is None or not cancel():
            return False
        self._stopped.add(wish.step_id)
        return True

    def pop_messages(self, step_id: str) -> list[str]:
        """Return what a step has not heard yet; it counts as heard."""
        fresh = self._undelivered(step_id)
        self._delivered[step_id] = len(self._messages)
        return fresh

    def has_messages(self, step_id: str) -> bool:
        """Say whether there is something a step has not heard yet."""
        return bool(self._undelivered(step_id))

    def is_stopped(self, step_id: str) -> bool:
        """Say whether the person ended this step."""
        return step_id in self._stopped

    @contextmanager
    def track(self, step_id: str, working: "asyncio.Future[_Result]") -> Iterator[None]:
        """Let wishes reach a step while it works."""
        self._running[step_id] = working.cancel
        try:
            yield
        finally:
            del self._running[step_id]

    def _undelivered(self, step_id: str) -> list[str]:
        newer = self._messages[self._delivered.get(step_id, 0) :]
        return [wish.text for wish in newer if wish.step_id in (None, step_id)]
