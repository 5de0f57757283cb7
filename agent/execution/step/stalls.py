"""Detects a step without progress, and parses the line by which a step reports that its plan no longer fits."""

import json
from collections import Counter
from collections.abc import Callable, Sequence

from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import CallFact
from tooling.contract.lazy_pattern import lazy_pattern

MAX_FAILED_TURNS = 3
_REFUSED = frozenset({"blocked", "denied", "deferred"})
_COMMANDS = frozenset({"run_command", "run_python"})


class FailureStreak:
    """Counts consecutive turns in which every call failed.

    A new command that fails is information, not a lack of progress: that is how debugging works.
    """

    def __init__(self) -> None:
        self._turns = 0
        self._unproductive = 0
        self._refused = 0
        self._tried: set[str] = set()

    def record(self, facts: Sequence[CallFact]) -> StepStatus | None:
        """Return the status the step must end with after this turn, or None to continue."""
        if any(fact.success for fact in facts):
            self._turns = self._unproductive = self._refused = 0
            return None
        self._turns += 1
        self._refused = self._refused + 1 if all(fact.status in _REFUSED for fact in facts) else 0
        self._unproductive = 0 if self._has_new_errors(facts) else self._unproductive + 1
        if self._refused >= MAX_FAILED_TURNS:
            return "blocked"
        return "error" if self._turns >= MAX_FAILED_TURNS and self._unproductive >= MAX_FAILED_TURNS - 1 else None

    def _has_new_errors(self, facts: Sequence[CallFact]) -> bool:
        commands = {str(fact.args) for fact in facts if fact.tool in _COMMANDS and fact.status == "error"}
        new = commands - self._tried
        self._tried |= commands
        return bool(new)


# The second repetition gets a warning, the third ends the step.
WARN_AT, STOP_AT = 2, 3
MUTATING = frozenset({"write", "execute"})


class RepetitionDetector:
    """Counts in how many turns a call returned the same result.

    A new call with side effects resets the count: tests that still fail after another edit are work, not a loop.
    """

    def __init__(self, effect_of: Callable[[str], str | None]) -> None:
        self._effect_of = effect_of
        self._seen: Counter[str] = Counter()

    def record(self, facts: Sequence[CallFact]) -> int:
        """Return how often all calls of this turn have been repeated so far; 0 if any was new."""
        fingerprints = [_fingerprint(fact) for fact in facts]
        for fact, fingerprint in zip(facts, fingerprints, strict=True):
            if fingerprint not in self._seen and self._effect_of(fact.tool) in MUTATING:
                self._seen.clear()
        # Calls of one turn are made at once: none can depend on the result of another.
        self._seen.update(set(fingerprints))
        return min((self._seen[fingerprint] - 1 for fingerprint in fingerprints), default=0)


def _fingerprint(fact: CallFact) -> str:
    call = json.dumps([fact.tool, dict(fact.args)], sort_keys=True, default=str)
    return f"{call} {fact.status} {fact.exit_code} {fact.output_len} {fact.output_preview}"


_SURPRISE_LINE = lazy_pattern(r"^[\s>*_`#-]*SURPRISE:[*_`]*\s*(?P<why>.*?)[\s*_`]*$")


def split_surprise(answer: str) -> tuple[str, str]:
    """Split the SURPRISE line off the end of an answer."""
    before, _, last = answer.rstrip().rpartition("\n")
    found = _SURPRISE_LINE.match(last)
    if found is None:
        return answer, ""
    why = found["why"] or "the plan no longer fits"
    return before.rstrip() or why, why


class StallDetector:
    """The stall detection of one loop."""

    def __init__(self, effect_of: Callable[[str], str | None]) -> None:
        self.streak = FailureStreak()
        self.repetition = RepetitionDetector(effect_of)
