"""Steering messages and stop requests for running steps."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from agent.protocol.commands import Steer, StopStep

_Result = TypeVar("_Result")
STOPPED_BY_USER = "Stopped by you."


class StepControl:
    """Accepts commands at any time and delivers each once to every step it concerns."""

    def __init__(self) -> None:
        self._messages: list[Steer] = []
        self._delivered: dict[str, int] = {}
        self._running: dict[str, Callable[[], bool]] = {}
        self._stopped: dict[str, str] = {}

    def steer(self, command: Steer) -> bool:
        """Queue a message for one step or for all steps from now on; return False if that step is not running."""
        if command.step_id is not None and command.step_id not in self._running:
            return False
        self._messages.append(command)
        return True

    def stop(self, command: StopStep) -> bool:
        """Cancel one step for the user; return False if it is not running."""
        cancel = self._running.get(command.step_id)
        if cancel is None or not cancel():
            return False
        self._stopped[command.step_id] = STOPPED_BY_USER
        return True

    def cancel(self, step_id: str, reason: str) -> None:
        """Cancel one step, even if it is only about to start."""
        self._stopped[step_id] = reason
        if cancel := self._running.get(step_id):
            cancel()

    def pop_messages(self, step_id: str) -> list[str]:
        """Return the undelivered messages for a step and mark them as delivered."""
        fresh = self._undelivered(step_id)
        self._delivered[step_id] = len(self._messages)
        return fresh

    def has_messages(self, step_id: str) -> bool:
        return bool(self._undelivered(step_id))

    def stop_reason(self, step_id: str) -> str | None:
        """Return why a step was cancelled; None if it was not."""
        return self._stopped.get(step_id)

    @contextmanager
    def track(self, step_id: str, task: "asyncio.Future[_Result]") -> Iterator[None]:
        """Make a step reachable for commands while its task runs."""
        self._running[step_id] = task.cancel
        if step_id in self._stopped:
            task.cancel()
        try:
            yield
        finally:
            del self._running[step_id]

    def _undelivered(self, step_id: str) -> list[str]:
        newer = self._messages[self._delivered.get(step_id, 0) :]
        return [message.text for message in newer if message.step_id in (None, step_id)]
