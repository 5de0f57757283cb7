"""Plans of the lead that are wrong, strange, too long or broken off."""

import pytest

from agent.execution.graph.delegation import NOTHING_RUNS
from agent.execution.graph.plan_tool import LEAD_ONLY
from tests.agent.orchestrator.lead_runs import AUTO, plan_results
from tests.agent.orchestrator.run_harness import RunHarness
from tests.cli.terminal_user import hand_out, lead_reply, step, step_call, step_reply


def test_a_cycle_is_refused_and_can_be_planned_again(harness: RunHarness) -> None:
    run = harness.run(
        hand_out(step("a", "b"), step("b", "a"), step("c")),
        step_reply("c", "C"),
        hand_out(step("a"), step("b", "a"), step("c")),
        step_reply("a", "A"),
        step_reply("b", "B"),
        lead_reply("All."),
        **AUTO,
    )
    assert "These steps wait for each other: a → b → a." in plan_results(run)[0]
    assert run.statuses == {"a": "ok", "b": "ok", "c": "ok", "lead": "ok"}
    assert run.outcome.exit_code == 0


def test_a_dependency_that_does_not_exist_is_dropped(harness: RunHarness) -> None:
    run = harness.run(hand_out(step("a", "ghost")), step_reply("a", "A"), lead_reply("A."), **AUTO)
    assert (run.outcome.exit_code, run.statuses) == (0, {"a": "ok", "lead": "ok"})


@pytest.mark.parametrize("chunks", [1, 20])
def test_an_id_used_twice_gets_a_number(harness: RunHarness, chunks: int) -> None:
    other = {**step("a"), "instruction": "Do something else"}
    given = {**hand_out(step("a"), other, step("lead")), "chunks": chunks}
    run = harness.run(
        given, step_reply("a", "A"), step_reply("a-2", "A2"), step_reply("lead-2", "L"), lead_reply("All."), **AUTO
    )
    assert run.statuses == {"a": "ok", "a-2": "ok", "lead-2": "ok", "lead": "ok"}


@pytest.mark.parametrize("chunks", [1, 20])
def test_an_id_with_spaces_runs_once(harness: RunHarness, chunks: int) -> None:
    given = {**hand_out(step("my step")), "chunks": chunks}
    run = harness.run(given, step_reply("my-step", "A"), lead_reply("A."), **AUTO)
    assert (run.outcome.exit_code, run.statuses) == (0, {"my-step": "ok", "lead": "ok"})


def test_a_later_plan_with_a_used_id_gets_a_number(harness: RunHarness) -> None:
    again = {**step("a"), "instruction": "Do something else"}
    run = harness.run(
        hand_out(step("a")),
        step_reply("a", "A"),
        hand_out(again),
        step_reply("a-2", "A2"),
        lead_reply("Both."),
        **AUTO,
    )
    assert run.statuses == {"a": "ok", "a-2": "ok", "lead": "ok"}
    assert "A2" in plan_results(run)[1] and "A2" not in plan_results(run)[0]


def test_a_plan_whose_arguments_are_wrong_after_its_first_steps_runs_each_step_once(harness: RunHarness) -> None:
    wrong = {**hand_out(step("a"), {**step("b"), "colour": "red"}), "chunks": 20, "chunk_delay_ms": 5}
    run = harness.run(
        wrong,
        step_reply("a", "A"),
        step_reply("b", "B"),
        hand_out(step("a"), step("b"), step("c")),
        step_reply("c", "C"),
        lead_reply("All."),
        **AUTO,
    )
    assert "colour" in plan_results(run)[0]
    assert run.statuses == {"a": "ok", "b": "ok", "c": "ok", "lead": "ok"}
    assert "A" in plan_results(run)[1]


def test_a_plan_that_breaks_off_and_comes_back_different_is_followed(harness: RunHarness) -> None:
    other = {**step("a"), "instruction": "Do something else"}
    broken = {**hand_out(step("a"), step("b")), "chunks": 20, "chunk_delay_ms": 20, "fault": "reset"}
    run = harness.run(
        broken,
        hand_out(other, step("c")),
        {"match": {"step": "a"}, "text": "the first a", "delay_ms": 20_000},
        {"match": {"step": "b"}, "text": "the first b", "delay_ms": 20_000},
        step_reply("a-2", "the new a"),
        step_reply("c", "C"),
        lead_reply("All."),
        **AUTO,
    )
    assert run.statuses == {"a": "cancelled", "b": "cancelled", "a-2": "ok", "c": "ok", "lead": "ok"}
    assert run.outcome.exit_code == 0


def test_an_empty_plan_is_refused(harness: RunHarness) -> None:
    run = harness.run(hand_out(), hand_out(step("a")), step_reply("a", "A"), lead_reply("A."), **AUTO)
    assert NOTHING_RUNS in plan_results(run)[0]
    assert run.statuses == {"a": "ok", "lead": "ok"}


def test_a_step_cannot_hand_out_steps(harness: RunHarness) -> None:
    run = harness.run(
        hand_out(step("a", context="fork")),
        step_call("a", "plan", steps=[step("z")]),
        step_reply("a", "A without help"),
        lead_reply("A."),
        **AUTO,
    )
    assert plan_results(run)[0] == LEAD_ONLY
    assert run.statuses == {"a": "ok", "lead": "ok"}
    assert run.outcome.exit_code == 0


def test_steps_beyond_the_limit_are_skipped_and_said(harness: RunHarness) -> None:
    run = harness.run(
        hand_out(*(step(name) for name in "abc")),
        step_reply("a", "A"),
        step_reply("b", "B"),
        lead_reply("A and B."),
        lead_reply("A and B."),
        max_steps=2,
        **AUTO,
    )
    assert run.statuses == {"a": "ok", "b": "ok", "c": "skipped", "lead": "ok"}
    assert (run.outcome.exit_code, run.outcome.error) == (53, "the plan has 1 steps more than the limit of 2")
