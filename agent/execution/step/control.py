"""What the person wishes of steps at work: words they hear before their next turn, and an end before their time."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from agent.protocol.commands import Steer, StopStep

_Ended = TypeVar("_Ended")


class Wishes:
    """Takes wishes in at any time and hands each to the steps it concerns, once."""

    def __init__(self) -> None:
        self._words: list[Steer] = []
        self._heard: dict[str, int] = {}
        self._working: dict[str, Callable[[], bool]] = {}
        self._stopped: set[str] = set()

    def steer(self, wish: Steer) -> bool:
        """Keep words for one step, or for all of the run from now on; False when that step is not at work."""
        if wish.step_id is not None and wish.step_id not in self._working:
            return False
        self._words.append(wish)
        return True

    def stop(self, wish: StopStep) -> bool:
        """End one step; False when it is not at work."""
        cancel = self._working.get(wish.step_id)
        if cancel is None or not cancel():
            return False
        self._stopped.add(wish.step_id)
        return True

    def words(self, step_id: str) -> list[str]:
        """Return what a step has not heard yet; it counts as heard."""
        fresh = self._fresh(step_id)
        self._heard[step_id] = len(self._words)
        return fresh

    def has_words(self, step_id: str) -> bool:
        """Say whether there is something a step has not heard yet."""
        return bool(self._fresh(step_id))

    def is_stopped(self, step_id: str) -> bool:
        """Say whether the person ended this step."""
        return step_id in self._stopped

    @contextmanager
    def at_work(self, step_id: str, working: "asyncio.Future[_Ended]") -> Iterator[None]:
        """Let wishes reach a step while it works."""
        self._working[step_id] = working.cancel
        try:
            yield
        finally:
            del self._working[step_id]

    def _fresh(self, step_id: str) -> list[str]:
        newer = self._words[self._heard.get(step_id, 0) :]
        return [wish.text for wish in newer if wish.step_id in (None, step_id)]
