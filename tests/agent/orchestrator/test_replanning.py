"""Replanning after failures and surprises."""

import pytest

from agent.backends.sandbox.runner import missing_bubblewrap_warning
from agent.execution.graph.replanning import replan_failed, replan_limit_reached
from agent.vocabulary.plan import Plan, PlanStep
from tests.agent.orchestrator.run_harness import RunHarness
from tests.cli.terminal_user import composer_reply, plan, step, step_call, step_reply

FAILS = {"match": {"step": "a"}, "fault": "refused"}


def test_a_failed_step_is_replaced_and_the_run_succeeds(harness: RunHarness) -> None:
    run = harness.run(
        plan(step("a"), step("b", "a"), step("c")),
        FAILS,
        plan(step("a2"), step("b", "a2"), step("c")),
        step_reply("a2", "another way"),
        step_reply("b", "B"),
        step_reply("c", "C"),
        composer_reply("All there [a2], though a failed at first [a]."),
    )
    assert (run.outcome.exit_code, run.outcome.error) == (0, None)
    assert run.statuses == {"a": "error", "a2": "ok", "b": "ok", "c": "ok"}
    reason, diff = run.plans[-1]
    assert reason.startswith("surprise: a failed: ")
    assert diff == "- a Title of a\n+ a2 Title of a2\n~ b Title of b"
    assert run.of_type("result")[0]["steps"] == {"ok": 3, "failed": 1, "skipped": 0}


def test_dependents_of_a_failed_step_wait_for_the_new_plan(harness: RunHarness) -> None:
    run = harness.run(
        plan(step("a"), step("b", "a")),
        FAILS,
        plan(step("b")),
        step_reply("b", "B without a"),
        composer_reply("B."),
    )
    assert run.statuses == {"a": "error", "b": "ok"}
    assert run.outcome.exit_code == 1, "no step does the work of a"


def test_without_replanning_only_dependents_of_the_failed_step_are_skipped(harness: RunHarness) -> None:
    run = harness.run(
        plan(step("a"), step("b", "a"), step("c")),
        FAILS,
        step_reply("c", "C"),
        composer_reply("Only C."),
        replan="never",
    )
    assert run.statuses == {"a": "error", "b": "skipped", "c": "ok"}
    assert (run.outcome.exit_code, run.outcome.subtype) == (1, "partial")
    assert len(run.plans) <= 2


def test_a_surprise_replaces_unstarted_steps(harness: RunHarness) -> None:
    run = harness.run(
        plan(step("a"), step("b", "a"), step("c", "a")),
        step_reply("a", "There is nothing to do for b.\nSURPRISE: the folder is empty"),
        plan(step("d", "a")),
        step_reply("d", "D"),
        composer_reply("D."),
    )
    assert run.statuses == {"a": "ok", "d": "ok"}
    assert run.plans[-1] == (
        "surprise: a: the folder is empty",
        "- b Title of b\n- c Title of c\n+ d Title of d",
    )
    assert run.outcome.exit_code == 0


def test_a_surprise_of_the_last_step_is_ignored(harness: RunHarness) -> None:
    run = harness.run(plan(step("a")), step_reply("a", "Done.\nSURPRISE: it was done already"))
    assert (run.outcome.exit_code, run.outcome.answer, len(run.plans)) == (0, "Done.", 1)


def test_a_new_step_with_a_used_id_gets_a_new_id(harness: RunHarness) -> None:
    again = step("a")
    again["instruction"] = "Do something else"
    run = harness.run(
        plan(step("a"), step("b", "a")),
        step_reply("a", "A\nSURPRISE: more to do"),
        plan(again, step("b", "a")),
        step_reply("a-2", "A again"),
        step_reply("b", "B"),
        composer_reply("All."),
    )
    assert run.statuses == {"a": "ok", "a-2": "ok", "b": "ok"}
    assert run.of_type("plan")[-1]["steps"][-1]["depends_on"] == ["a-2"]  # type: ignore[index]


def test_a_finished_step_is_not_repeated_after_replanning(harness: RunHarness) -> None:
    run = harness.run(
        plan(step("a"), step("b", "a")),
        step_reply("a", "A\nSURPRISE: more to do"),
        plan(step("a"), step("b", "a"), step("c", "b")),
        step_reply("b", "B"),
        step_reply("c", "C"),
        composer_reply("All."),
    )
    assert run.statuses == {"a": "ok", "b": "ok", "c": "ok"}
    assert run.plans[-1][1] == "+ c Title of c"


@pytest.mark.parametrize(
    "reply",
    [{"match": {"purpose": "planner"}, "fault": "refused"}, {"match": {"purpose": "planner"}, "text": "no idea"}],
)
def test_failed_replanning_is_a_warning_and_the_old_plan_continues(harness: RunHarness, reply: object) -> None:
    run = harness.run(
        plan(step("a"), step("b", "a"), step("c")), FAILS, reply, step_reply("c", "C"), composer_reply("Only C.")
    )
    assert run.statuses == {"a": "error", "b": "skipped", "c": "ok"}
    assert run.warnings[0].startswith(replan_failed(""))


def test_the_number_of_replans_is_limited(harness: RunHarness) -> None:
    surprise = "there is more\nSURPRISE: more"
    run = harness.run(
        plan(step("s1"), step("s2", "s1")),
        *(step_reply(f"s{number}", surprise) for number in range(1, 5)),
        *(plan(step(f"s{number}", f"s{number - 1}"), step(f"s{number + 1}", f"s{number}")) for number in (2, 3)),
        composer_reply("Enough."),
        max_replans=1,
    )
    assert run.statuses == {"s1": "ok", "s2": "ok", "s3": "ok"}
    assert run.warnings == [replan_limit_reached(1)]


def test_replan_always_replans_after_every_step_and_announces_only_changes(harness: RunHarness) -> None:
    same = (plan(step("b", "a"), step("c", "b")), plan(step("c", "b")))
    run = harness.run(
        plan(step("a"), step("b", "a"), step("c", "b")),
        *(step_reply(name, name) for name in "abc"),
        *same,
        composer_reply("abc"),
        replan="always",
    )
    assert run.statuses == {"a": "ok", "b": "ok", "c": "ok"}
    assert all(diff is None for _, diff in run.plans)
    assert run.of_type("result")[0]["num_turns"] == 3 + 3 + 1


def test_an_empty_plan_after_a_surprise_ends_the_run(harness: RunHarness) -> None:
    nothing = {"match": {"purpose": "planner"}, "text": '{"steps": []}'}
    run = harness.run(
        plan(step("a"), step("b", "a")), step_reply("a", "All is done already.\nSURPRISE: nothing left"), nothing
    )
    assert run.statuses == {"a": "ok"}
    assert run.plans[-1][1] == "- b Title of b"
    assert (run.outcome.exit_code, run.outcome.answer) == (0, "All is done already.")


def test_a_refused_command_does_not_lead_to_replanning(harness: RunHarness) -> None:
    run = harness.run(
        plan(step("a"), step("b", "a")),
        {**step_call("a", "run_command", command="git push"), "repeat": True},
    )
    assert run.outcome.exit_code == 57
    assert run.statuses == {"a": "blocked", "b": "skipped"}
    assert set(run.warnings) <= {missing_bubblewrap_warning()}


def test_a_plan_file_is_replanned_only_if_requested(harness: RunHarness) -> None:
    harness.plan = Plan(
        steps=tuple(
            PlanStep(id=name, title=name, instruction=f"Do {name}", depends_on=after)
            for name, after in (("a", ()), ("b", ("a",)))
        ),
        reason="file",
    )
    assert harness.run(FAILS).statuses == {"a": "error", "b": "skipped"}
    again = harness.run(
        FAILS,
        plan(step("x"), step("b", "x")),
        step_reply("x", "X"),
        step_reply("b", "B"),
        composer_reply("B."),
        replan="surprise",
    )
    assert again.statuses == {"a": "error", "x": "ok", "b": "ok"}


def test_the_step_limit_covers_all_plans_together(harness: RunHarness) -> None:
    run = harness.run(
        plan(step("a"), step("b", "a")),
        step_reply("a", "A\nSURPRISE: more"),
        plan(*(step(name, "a") for name in "bcde")),
        step_reply("b", "B"),
        step_reply("c", "C"),
        composer_reply("Some."),
        max_steps=3,
    )
    assert run.statuses == {"a": "ok", "b": "ok", "c": "ok", "d": "skipped", "e": "skipped"}
    assert run.outcome.exit_code == 53
    assert run.outcome.error == "the plan has 2 steps more than the limit of 3"
