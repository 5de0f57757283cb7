"""Where finished steps are kept by the address of what they were asked: resume and replan look there first."""

from typing import Protocol

from agent.vocabulary.step import ExecutorResponse


class StepShelf(Protocol):
    """Results by key; a result is on disk before its step is reported done."""

    def find(self, key: str) -> ExecutorResponse | None:
        """Return the result of a step that was asked for exactly this, or None."""
        ...

    async def keep(self, key: str, response: ExecutorResponse) -> None:
        """Store a successful result so that it survives a crash from now on. Raises OSError when it does not."""
        ...


class NoShelf:
    """Keeps nothing: for runs that leave nothing behind."""

    def find(self, key: str) -> ExecutorResponse | None:
        """Return nothing."""
        return None

    async def keep(self, key: str, response: ExecutorResponse) -> None:
        """Forget the result."""
