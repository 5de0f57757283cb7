"""One thing found out about a shell text that speaks against just running it."""

from tooling.contract.action import Decision
from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A reason and what follows from it; with `is_doubt` no part of the text may speak for the whole."""

    decision: Decision
    rule: str
    reason: str
    command: str = ""
    is_doubt: bool = False
    category: str = ""


def ask(rule: str, reason: str, command: str = "") -> Finding:
    """Return a reason to ask."""
    return Finding(decision=Decision.ASK, rule=rule, reason=reason, command=command)


def block(rule: str, reason: str, command: str = "") -> Finding:
    """Return a reason to refuse."""
    return Finding(decision=Decision.BLOCK, rule=rule, reason=reason, command=command)


def unparsable() -> Finding:
    """Return the doubt about a text that the grammar does not quite follow."""
    return doubt("unparsable", "it cannot be understood for certain")


def doubt(rule: str, reason: str) -> Finding:
    """Return a reason not to trust the reading of the text."""
    return Finding(decision=Decision.ASK, rule=rule, reason=reason, is_doubt=True)
