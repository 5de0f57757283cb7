"""Notices a step that goes in circles: the same calls with the same results, again and again."""

import json
from collections import Counter
from collections.abc import Callable, Sequence

from agent.vocabulary.step import CallFact

# The second repetition gets a remark, the third ends the step.
REMARK, END = 2, 3
_CHANGES = frozenset({"write", "execute"})


class Repetition:
    """Counts how often a call came back with the same result.

    A new deed starts the count anew: tests that fail the same way after another edit are work, not a circle.
    """

    def __init__(self, effect_of: Callable[[str], str | None]) -> None:
        self._effect_of = effect_of
        self._seen: Counter[str] = Counter()

    def after(self, facts: Sequence[CallFact]) -> int:
        """Return how often everything in this turn has been repeated by now; 0 when there was anything new."""
        signs = [_sign(fact) for fact in facts]
        for fact, sign in zip(facts, signs, strict=True):
            if sign not in self._seen and self._effect_of(fact.tool) in _CHANGES:
                self._seen.clear()
        self._seen.update(signs)
        return min((self._seen[sign] - 1 for sign in signs), default=0)


def _sign(fact: CallFact) -> str:
    call = json.dumps([fact.tool, dict(fact.args)], sort_keys=True, default=str)
    return f"{call} {fact.status} {fact.exit_code} {fact.output_len} {fact.output_preview}"
