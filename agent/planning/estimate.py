"""Cost estimates for steps: a typical conversation at the prices of the step's model."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from agent.vocabulary.plan import PlanStep
from agent.vocabulary.usage import Usage

Cost: TypeAlias = Callable[[str, Usage], float | None]
Estimate: TypeAlias = Callable[[PlanStep], float | None]

# Every turn resends the conversation so far: the opening and everything earlier turns added.
_TURNS, _OPENING_TOKENS, _ADDED_TOKENS, _REPLY_TOKENS = 6, 1_500, 900, 250
TYPICAL_STEP = Usage(
    input_tokens=sum(_OPENING_TOKENS + turn * _ADDED_TOKENS for turn in range(_TURNS)),
    output_tokens=_TURNS * _REPLY_TOKENS,
    requests=_TURNS,
)


def build_estimator(model: str, cost: Cost) -> Estimate:
    """Return a function that estimates a step's cost; None if the price of its model is unknown."""
    known: dict[str, float | None] = {}

    def estimate(step: PlanStep) -> float | None:
        if step.type != "task":
            return 0.0
        name = step.model or model
        if name not in known:
            known[name] = cost(name, TYPICAL_STEP) if name else None
        return known[name]

    return estimate


def total_usd(steps: Iterable[PlanStep]) -> float | None:
    """Return the sum of all estimates; None if any is unknown."""
    total = 0.0
    for step in steps:
        if step.est_usd is None:
            return None
        total += step.est_usd
    return total
