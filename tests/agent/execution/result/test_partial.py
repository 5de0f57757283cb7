"""Partial answers of stopped runs: finished results, missing steps, remaining cost."""

import pytest

from agent.execution.result.outcome_builder import STILL_PLANNING, partial_answer, remaining_cost
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import ExecutorResponse, StepOutput
from agent.vocabulary.usage import Usage


def step(name: str) -> PlanStep:
    return PlanStep(id=name, title=f"Title {name}", instruction=name)


def result(
    name: str, status: StepStatus = "ok", *, tokens: int = 0, cost: float | None = None
) -> tuple[PlanStep, ExecutorResponse]:
    usage = Usage(input_tokens=tokens, requests=1 if tokens else 0, cost_usd=cost)
    outputs = (StepOutput(type="text", content=f"Result {name}"),) if status == "ok" else ()
    return step(name), ExecutorResponse(
        task_id=name, status=status, summary=f"Sum {name}", outputs=outputs, usage=usage
    )


def test_a_partial_answer_has_the_finished_results_and_names_the_missing_steps() -> None:
    results = [
        result("a", tokens=900, cost=0.02),
        result("b", "cancelled", tokens=100, cost=0.01),
        result("c", "error"),
    ]
    assert partial_answer(results, [step("b"), step("d")], "interrupted") == (
        "Result a\n\nTitle c: Sum c\n\n"
        "Stopped: interrupted. Not finished: Title b; Title d. Finishing would cost about $0.04."
    )


def test_a_partial_answer_mentions_an_incomplete_plan() -> None:
    answer = partial_answer([result("a")], [], "the time limit of 2 s was reached", is_plan_complete=False)
    assert answer == (f"Result a\n\nStopped: the time limit of 2 s was reached. Not finished: {STILL_PLANNING}.")


def test_without_a_successful_step_there_is_no_answer() -> None:
    assert partial_answer([result("a", "error"), result("b", "cancelled")], [step("b")], "interrupted") == ""


@pytest.mark.parametrize(
    ("results", "cost"),
    [
        ([result("a", tokens=1000, cost=0.01), result("b", tokens=3000, cost=0.03)], "$0.06"),
        ([result("a", tokens=10, cost=0.001)], "$0.003"),
        ([result("a", tokens=1000), result("b", tokens=3000, cost=0.03)], "6,000 tokens"),
        ([result("a", tokens=500, cost=0.0)], "1,500 tokens"),
        ([result("a")], None),
        ([result("a", "error", tokens=500, cost=0.1)], None),
        ([], None),
    ],
)
def test_the_remaining_cost_is_estimated_from_the_finished_steps(
    results: list[tuple[PlanStep, ExecutorResponse]], cost: str | None
) -> None:
    assert remaining_cost([response for _, response in results], 3) == cost
