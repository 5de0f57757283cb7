"""Notices when a step gets nowhere: turns that only fail, and fail without teaching anything new."""

from collections.abc import Sequence

from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import CallFact

LIMIT = 3
_REFUSED = frozenset({"blocked", "denied", "deferred"})


class Streak:
    """Counts turns in a row in which every call failed.

    A command that was not tried before and ends with an error is news, not failure: that is how one debugs.
    """

    def __init__(self) -> None:
        self._turns = 0
        self._fruitless = 0
        self._refused = 0
        self._tried: set[str] = set()

    def after(self, facts: Sequence[CallFact]) -> StepStatus | None:
        """Return how the step must end after this turn, or None to go on."""
        if any(fact.success for fact in facts):
            self._turns = self._fruitless = self._refused = 0
            return None
        self._turns += 1
        self._refused = self._refused + 1 if all(fact.status in _REFUSED for fact in facts) else 0
        self._fruitless = 0 if self._taught_something(facts) else self._fruitless + 1
        if self._refused >= LIMIT:
            return "blocked"
        return "error" if self._turns >= LIMIT and self._fruitless >= LIMIT - 1 else None

    def _taught_something(self, facts: Sequence[CallFact]) -> bool:
        commands = {str(fact.args) for fact in facts if fact.tool == "run_command" and fact.status == "error"}
        fresh = commands - self._tried
        self._tried |= commands
        return bool(fresh)
