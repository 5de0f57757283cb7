"""Revising a plan: merging replanned steps, reasons for replanning, the progress given to the planner."""

import json

import pytest

from agent.config.settings import ReplanPolicy
from agent.execution.graph.plan_revision import progress_text, revise_plan
from agent.execution.graph.replanning import replan_reason
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import CallFact, ExecutorResponse
from tooling.contract.result import CallStatus


def step(name: str, *after: str, does: str = "") -> PlanStep:
    return PlanStep(id=name, title=f"T {name}", instruction=does or f"do {name}", depends_on=after)


PLAN = (step("done"), step("running"), step("waiting", "running"), step("gone", "done"))
USED = {"done": PLAN[0], "running": PLAN[1]}
WAITING = {"waiting", "gone"}


def test_waiting_steps_are_replaced_and_started_steps_stay() -> None:
    revision = revise_plan(PLAN, [step("waiting", "done"), step("new")], waiting=WAITING, used=USED, replaced=())
    assert [one.id for one in revision.steps] == ["done", "running", "waiting", "new"]
    assert [one.id for one in revision.unstarted] == ["waiting", "new"]
    assert revision.diff == "- gone T gone\n~ waiting T waiting\n+ new T new"
    assert revision.has_new_work


def test_other_work_under_a_used_id_gets_a_new_id_in_dependencies_too() -> None:
    again = [step("done", does="something else"), step("new", "done"), step("done-2")]
    revision = revise_plan(PLAN, again, waiting=WAITING, used=USED, replaced=())
    assert [one.id for one in revision.unstarted] == ["done-3", "new", "done-2"]
    assert revision.unstarted[1].depends_on == ("done-3",)


def test_the_same_work_under_a_used_id_is_the_existing_step() -> None:
    revision = revise_plan(PLAN, [step("running"), *PLAN[2:]], waiting=WAITING, used=USED, replaced=())
    assert (revision.steps, revision.diff, revision.has_new_work) == (PLAN, "", False)


def test_a_failed_step_can_be_retried_under_a_new_id() -> None:
    revision = revise_plan(PLAN, [step("done"), *PLAN[2:]], waiting=WAITING, used=USED, replaced={"done"})
    assert revision.diff == "- done T done\n+ done-2 T done\n~ gone T gone"
    assert revision.unstarted[-1].depends_on == ("done-2",)
    assert revision.has_new_work


def test_a_changed_estimate_is_not_a_change_of_the_plan() -> None:
    cheaper = PlanStep(id="waiting", title="T waiting", instruction="do waiting", depends_on=("running",), est_usd=0.1)
    assert revise_plan(PLAN, [cheaper, PLAN[3]], waiting=WAITING, used=USED, replaced=()).diff == ""


def test_a_dependency_on_the_replaced_step_is_dropped() -> None:
    failed = step("a")
    again = [step("b", "a", does="do a in another way"), step("c", "b", "a")]
    revision = revise_plan([failed, step("c", "a")], again, waiting={"c"}, used={"a": failed}, replaced={"a"})
    assert [(one.id, one.depends_on) for one in revision.unstarted] == [("b", ()), ("c", ("b",))]


def test_dependents_of_a_failed_step_depend_on_its_replacement() -> None:
    failed = step("a")
    again = [step("a", does="do a in another way"), step("c", "a")]
    revision = revise_plan([failed, step("c", "a")], again, waiting={"c"}, used={"a": failed}, replaced={"a"})
    assert [(one.id, one.depends_on) for one in revision.unstarted] == [("a-2", ()), ("c", ("a-2",))]


def response(
    status: StepStatus, *, exit_code: int = 0, surprise: str = "", call: CallStatus | None = None
) -> ExecutorResponse:
    facts = (CallFact(tool="t", args={}, status=call, exit_code=1, output_len=0, output_preview=""),) if call else ()
    return ExecutorResponse(
        task_id="a", status=status, summary="so it ended", exit_code=exit_code, surprise=surprise, tool_calls=facts
    )


@pytest.mark.parametrize(
    ("ended_with", "policy", "has_waiting", "why"),
    [
        (response("error"), "surprise", False, "a failed: so it ended"),
        (response("timeout"), "surprise", True, "a failed: so it ended"),
        (response("partial"), "surprise", True, "a worked only in part: so it ended"),
        (response("partial"), "surprise", False, None),
        (response("ok", surprise="it is empty"), "surprise", True, "a: it is empty"),
        (response("ok", surprise="it is empty"), "surprise", False, None),
        (response("ok"), "surprise", True, None),
        (response("ok"), "always", True, "a is done"),
        (response("ok"), "always", False, None),
        (response("error"), "never", True, None),
        (response("error", exit_code=41), "always", True, None),
        (response("error", exit_code=52), "surprise", True, None),
        (response("error", exit_code=56), "surprise", True, None),
        (response("error", exit_code=75), "surprise", True, None),
        (response("error", exit_code=54), "surprise", True, "a failed: so it ended"),
        (response("error", call="denied"), "surprise", True, None),
        (response("partial", call="deferred"), "surprise", True, None),
        (response("blocked"), "surprise", True, None),
        (response("skipped"), "always", True, None),
        (response("cancelled"), "always", True, None),
    ],
)
def test_which_responses_lead_to_replanning(
    ended_with: ExecutorResponse, policy: ReplanPolicy, has_waiting: bool, why: str | None
) -> None:
    assert replan_reason(step("a"), ended_with, policy=policy, has_waiting=has_waiting) == why


def test_progress_contains_the_latest_results_and_is_bounded() -> None:
    long = "x" * 5000
    results = [
        (step(f"s{number}"), ExecutorResponse(task_id=f"s{number}", status="ok", summary=long)) for number in range(40)
    ]
    waiting = [step(f"w{number}", does=long) for number in range(200)]
    text = progress_text(results, [step("r")], waiting)
    progress = json.loads(text)
    assert [one["id"] for one in progress["ended"]] == [f"s{number}" for number in range(15, 40)]
    assert progress["running"] == [{"id": "r", "title": "T r"}]
    assert progress["not started"][0]["id"] == "w0"
    # agent/planning/planner.py truncates longer texts in the middle.
    assert len(text) < 16_000
