"""Cost estimates for steps."""

from agent.planning.estimate import TYPICAL_STEP, build_estimator, total_usd
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.usage import Usage


def cost(model: str, usage: Usage) -> float | None:
    return None if model == "unknown" else usage.input_tokens * 1e-6 + usage.output_tokens * 1e-5


def step(**more: object) -> PlanStep:
    return PlanStep(id="a", title="a", instruction="a", **more)  # type: ignore[arg-type]


def test_a_task_costs_a_typical_conversation_and_a_tool_call_nothing() -> None:
    estimate = build_estimator("known", cost)
    assert estimate(step()) == cost("known", TYPICAL_STEP) == 0.0375
    assert (estimate(step(type="tool")), estimate(step(type="ask_user"))) == (0.0, 0.0)


def test_without_a_price_there_is_no_estimate() -> None:
    assert build_estimator("known", cost)(step(model="unknown")) is None
    assert build_estimator("", cost)(step()) is None
    assert build_estimator("unknown", cost)(step(model="known")) is not None


def test_a_total_is_known_only_if_all_estimates_are() -> None:
    assert total_usd([step(est_usd=0.5), step(est_usd=0.25)]) == 0.75
    assert total_usd([step(est_usd=0.5), step()]) is None
    assert total_usd([]) == 0.0
