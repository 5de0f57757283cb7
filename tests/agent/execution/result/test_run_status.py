"""The one table of how a run ends."""

from dataclasses import replace

import pytest

from agent.execution.result.run_status import ASK_IN_TERMINAL, CHECK_FAILED, NO_ANSWER, NO_CHECKS, run_status
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import CallFact, ExecutorResponse
from tooling.contract.result import CallStatus


def ended(
    status: StepStatus = "ok", exit_code: int = 0, *, name: str = "a", call: CallStatus | None = None
) -> ExecutorResponse:
    fact = CallFact(
        tool="run_command", args={"command": "x"}, status=call or "ok", exit_code=0, output_len=2, output_preview="no"
    )
    return ExecutorResponse(
        task_id=name, status=status, summary=f"so {status}", exit_code=exit_code, tool_calls=(fact,) if call else ()
    )


OK, PARTIAL, SKIPPED = ended(), replace(ended("partial"), shortfall="half is missing"), ended("skipped")
QUESTION = replace(ended("needs_input", 1), summary="Which?", next_questions=("Which?",))
ASSUMED = replace(ended("partial"), shortfall="unanswered question: Which?", next_questions=("Which?",))


@pytest.mark.parametrize(
    ("responses", "subtype", "exit_code", "error"),
    [
        ([], "success", 0, None),
        ([OK, OK], "success", 0, None),
        ([OK, ended(call="error")], "success", 0, None),
        ([PARTIAL], "partial", 1, "a is incomplete: half is missing"),
        ([OK, PARTIAL], "partial", 1, "a is incomplete: half is missing"),
        ([OK, replace(PARTIAL, task_id="lead")], "partial", 1, "the task is incomplete: half is missing"),
        ([ended("partial")], "partial", 1, "a is incomplete: so partial"),
        ([ASSUMED], "partial", 1, "unanswered question: Which?"),
        ([OK, QUESTION], "partial", 1, "unanswered question: Which?"),
        ([QUESTION, SKIPPED], "error_task", 1, "unanswered question: Which?"),
        ([OK, ended("error", 1)], "partial", 1, "so error"),
        ([PARTIAL, ended("error", 1)], "partial", 1, "so error"),
        ([ended("error", 1), SKIPPED], "error_task", 1, "so error"),
        ([OK, ended("cancelled")], "partial", 1, "so cancelled"),
        ([OK, ended("timeout"), SKIPPED], "error_timeout", 124, "so timeout"),
        ([ended("timeout"), ended("error", 1)], "error_task", 1, "so error"),
        ([ended("partial", 53)], "error_limit", 53, "so partial"),
        ([PARTIAL, ended("error", 54)], "error_tool", 54, "so error"),
        ([ended("error", 54), ended("error", 75)], "error_provider", 75, "so error"),
        ([ended("error", 75), ended("error", 56)], "error_budget", 56, "so error"),
        ([OK, ended(call="denied")], "error_approval", 57, "x: no"),
        ([ended("error", 56), ended("partial", call="blocked")], "error_approval", 57, "x: no"),
        ([ended("partial", call="deferred")], "error_approval", 57, "x: no"),
    ],
)
def test_how_a_run_with_an_answer_ends(
    responses: list[ExecutorResponse], subtype: str, exit_code: int, error: str | None
) -> None:
    status = run_status(responses, "An answer.")
    assert (status.subtype, status.exit_code, status.error) == (subtype, exit_code, error)
    assert status.hint == (ASK_IN_TERMINAL if QUESTION in responses or ASSUMED in responses else "")


def test_without_an_answer_nothing_is_a_success() -> None:
    assert run_status([OK], " \n").error == NO_ANSWER
    assert run_status([PARTIAL], "").subtype == "partial"


def test_a_question_counts_even_if_a_new_plan_went_on_without_its_answer() -> None:
    status = run_status([OK], "Assumed.", replaced=[QUESTION])
    assert (status.subtype, status.exit_code, status.hint) == ("partial", 1, ASK_IN_TERMINAL)
    assert run_status([OK], "Done.", replaced=[ended("error", 1), PARTIAL]).exit_code == 0


@pytest.mark.parametrize(("verified", "error"), [(None, NO_CHECKS), (False, CHECK_FAILED), (True, None)])
def test_a_required_check_decides_last(verified: bool | None, error: str | None) -> None:
    checked = replace(OK, verified=verified)
    assert run_status([checked], "Done.", require_verified=True).error == error
    assert run_status([checked, PARTIAL], "Done.", require_verified=True).exit_code == 1
