"""What a run that was stopped says: what is finished, what is missing, what the rest would cost."""

import pytest

from agent.execution.result.outcome_builder import partial_answer, remaining_cost
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import ExecutorResponse, StepOutput
from agent.vocabulary.usage import Usage


def step(name: str) -> PlanStep:
    return PlanStep(id=name, title=f"Title {name}", instruction=name)


def ended(
    name: str, status: StepStatus = "ok", *, tokens: int = 0, cost: float | None = None
) -> tuple[PlanStep, ExecutorResponse]:
    usage = Usage(input_tokens=tokens, requests=1 if tokens else 0, cost_usd=cost)
    outputs = (StepOutput(type="text", content=f"Result {name}"),) if status == "ok" else ()
    return step(name), ExecutorResponse(
        task_id=name, status=status, summary=f"Sum {name}", outputs=outputs, usage=usage
    )


def test_it_answers_from_what_is_finished_and_names_the_rest() -> None:
    results = [ended("a", tokens=900, cost=0.02), ended("b", "cancelled", tokens=100, cost=0.01), ended("c", "error")]
    assert partial_answer(results, [step("b"), step("d")], "interrupted") == (
        "Result a\n\nTitle c: Sum c\n\n"
        "Stopped: interrupted. Not finished: Title b; Title d. The rest would cost about 0.04 USD."
    )


def test_a_plan_that_was_not_whole_is_said_to_be_so() -> None:
    said = partial_answer([ended("a")], [], "the time limit of 2 s is over", is_plan_complete=False)
    assert said == ("Result a\n\nStopped: the time limit of 2 s is over. Not finished: what was still being planned.")


def test_where_nothing_succeeded_there_is_no_answer() -> None:
    assert partial_answer([ended("a", "error"), ended("b", "cancelled")], [step("b")], "interrupted") == ""


@pytest.mark.parametrize(
    ("results", "cost"),
    [
        ([ended("a", tokens=1000, cost=0.01), ended("b", tokens=3000, cost=0.03)], "0.06 USD"),
        ([ended("a", tokens=1000), ended("b", tokens=3000, cost=0.03)], "6,000 tokens"),
        ([ended("a", tokens=500, cost=0.0)], "1,500 tokens"),
        ([ended("a")], None),
        ([ended("a", "error", tokens=500, cost=0.1)], None),
        ([], None),
    ],
)
def test_the_rest_is_priced_by_what_finished(
    results: list[tuple[PlanStep, ExecutorResponse]], cost: str | None
) -> None:
    assert remaining_cost([response for _, response in results], 3) == cost
