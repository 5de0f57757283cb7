"""The rest of a plan is made again when it no longer fits what happened."""

import pytest

from agent.backends.sandbox.runner import missing_bubblewrap_warning
from agent.vocabulary.plan import Plan, PlanStep
from tests.agent.orchestrator.run_harness import RunHarness
from tests.cli.terminal_user import composer_reply, plan, step, step_call, step_reply

FAILS = {"match": {"step": "a"}, "fault": "refused"}


def test_a_step_that_failed_is_replaced_and_the_run_succeeds(stage: RunHarness) -> None:
    played = stage.run(
        plan(step("a"), step("b", "a"), step("c")),
        FAILS,
        plan(step("a2"), step("b", "a2"), step("c")),
        step_reply("a2", "another way"),
        step_reply("b", "B"),
        step_reply("c", "C"),
        composer_reply("All there [a2], though a failed at first [a]."),
    )
    assert (played.outcome.exit_code, played.outcome.error) == (0, None)
    assert played.statuses == {"a": "error", "a2": "ok", "b": "ok", "c": "ok"}
    reason, diff = played.plans[-1]
    assert reason.startswith("surprise: a failed: ")
    assert diff == "- a Title of a\n+ a2 Title of a2\n~ b Title of b"
    assert played.of_type("result")[0]["steps"] == {"ok": 3, "failed": 1, "skipped": 0}


def test_what_depends_on_a_failed_step_waits_until_the_new_plan_is_there(stage: RunHarness) -> None:
    played = stage.run(
        plan(step("a"), step("b", "a")),
        FAILS,
        plan(step("b")),
        step_reply("b", "B without a"),
        composer_reply("B."),
    )
    assert played.statuses == {"a": "error", "b": "ok"}
    assert played.outcome.exit_code == 1, "no step does the work of a"


def test_without_replanning_only_what_needs_the_failed_step_is_left_out(stage: RunHarness) -> None:
    played = stage.run(
        plan(step("a"), step("b", "a"), step("c")),
        FAILS,
        step_reply("c", "C"),
        composer_reply("Only C."),
        replan="never",
    )
    assert played.statuses == {"a": "error", "b": "skipped", "c": "ok"}
    assert (played.outcome.exit_code, played.outcome.subtype) == (1, "partial")
    assert len(played.plans) <= 2


def test_a_surprise_changes_the_steps_that_have_not_started(stage: RunHarness) -> None:
    played = stage.run(
        plan(step("a"), step("b", "a"), step("c", "a")),
        step_reply("a", "There is nothing to do for b.\nSURPRISE: the folder is empty"),
        plan(step("d", "a")),
        step_reply("d", "D"),
        composer_reply("D."),
    )
    assert played.statuses == {"a": "ok", "d": "ok"}
    assert played.plans[-1] == (
        "surprise: a: the folder is empty",
        "- b Title of b\n- c Title of c\n+ d Title of d",
    )
    assert played.outcome.exit_code == 0


def test_a_surprise_at_the_end_is_nobodys_business(stage: RunHarness) -> None:
    played = stage.run(plan(step("a")), step_reply("a", "Done.\nSURPRISE: it was done already"))
    assert (played.outcome.exit_code, played.outcome.answer, len(played.plans)) == (0, "Done.", 1)


def test_a_new_step_that_takes_a_used_id_gets_one_of_its_own(stage: RunHarness) -> None:
    again = step("a")
    again["instruction"] = "Do something else"
    played = stage.run(
        plan(step("a"), step("b", "a")),
        step_reply("a", "A\nSURPRISE: more to do"),
        plan(again, step("b", "a")),
        step_reply("a-2", "A again"),
        step_reply("b", "B"),
        composer_reply("All."),
    )
    assert played.statuses == {"a": "ok", "a-2": "ok", "b": "ok"}
    assert played.of_type("plan")[-1]["steps"][-1]["depends_on"] == ["a-2"]  # type: ignore[index]


def test_a_step_that_is_done_is_not_done_again(stage: RunHarness) -> None:
    played = stage.run(
        plan(step("a"), step("b", "a")),
        step_reply("a", "A\nSURPRISE: more to do"),
        plan(step("a"), step("b", "a"), step("c", "b")),
        step_reply("b", "B"),
        step_reply("c", "C"),
        composer_reply("All."),
    )
    assert played.statuses == {"a": "ok", "b": "ok", "c": "ok"}
    assert played.plans[-1][1] == "+ c Title of c"


@pytest.mark.parametrize(
    "reply",
    [{"match": {"purpose": "planner"}, "fault": "refused"}, {"match": {"purpose": "planner"}, "text": "no idea"}],
)
def test_a_plan_that_cannot_be_made_is_a_warning_and_the_old_one_goes_on(stage: RunHarness, reply: object) -> None:
    played = stage.run(
        plan(step("a"), step("b", "a"), step("c")), FAILS, reply, step_reply("c", "C"), composer_reply("Only C.")
    )
    assert played.statuses == {"a": "error", "b": "skipped", "c": "ok"}
    assert played.warnings[0].startswith("the rest could not be planned again")


def test_plans_are_made_again_only_so_often(stage: RunHarness) -> None:
    surprise = "there is more\nSURPRISE: more"
    played = stage.run(
        plan(step("s1"), step("s2", "s1")),
        *(step_reply(f"s{number}", surprise) for number in range(1, 5)),
        *(plan(step(f"s{number}", f"s{number - 1}"), step(f"s{number + 1}", f"s{number}")) for number in (2, 3)),
        composer_reply("Enough."),
        max_replans=1,
    )
    assert played.statuses == {"s1": "ok", "s2": "ok", "s3": "ok"}
    assert played.warnings == ["the rest is not planned again: max_replans (1) is reached"]


def test_always_asks_after_every_step_and_a_plan_that_stays_is_not_announced(stage: RunHarness) -> None:
    same = (plan(step("b", "a"), step("c", "b")), plan(step("c", "b")))
    played = stage.run(
        plan(step("a"), step("b", "a"), step("c", "b")),
        *(step_reply(name, name) for name in "abc"),
        *same,
        composer_reply("abc"),
        replan="always",
    )
    assert played.statuses == {"a": "ok", "b": "ok", "c": "ok"}
    assert all(diff is None for _, diff in played.plans)
    assert played.of_type("result")[0]["num_turns"] == 3 + 3 + 1


def test_nothing_left_to_do_is_an_answer_after_a_surprise(stage: RunHarness) -> None:
    nothing = {"match": {"purpose": "planner"}, "text": '{"steps": []}'}
    played = stage.run(
        plan(step("a"), step("b", "a")), step_reply("a", "All is done already.\nSURPRISE: nothing left"), nothing
    )
    assert played.statuses == {"a": "ok"}
    assert played.plans[-1][1] == "- b Title of b"
    assert (played.outcome.exit_code, played.outcome.answer) == (0, "All is done already.")


def test_what_a_person_refused_is_not_planned_around(stage: RunHarness) -> None:
    played = stage.run(
        plan(step("a"), step("b", "a")),
        {**step_call("a", "run_command", command="git push"), "repeat": True},
    )
    assert played.outcome.exit_code == 57
    assert played.statuses == {"a": "blocked", "b": "skipped"}
    assert set(played.warnings) <= {missing_bubblewrap_warning()}


def test_a_given_plan_is_run_as_written_unless_asked_otherwise(stage: RunHarness) -> None:
    stage.plan = Plan(
        steps=tuple(
            PlanStep(id=name, title=name, instruction=f"Do {name}", depends_on=after)
            for name, after in (("a", ()), ("b", ("a",)))
        ),
        reason="file",
    )
    assert stage.run(FAILS).statuses == {"a": "error", "b": "skipped"}
    again = stage.run(
        FAILS,
        plan(step("x"), step("b", "x")),
        step_reply("x", "X"),
        step_reply("b", "B"),
        composer_reply("B."),
        replan="surprise",
    )
    assert again.statuses == {"a": "error", "x": "ok", "b": "ok"}


def test_the_limit_of_steps_holds_for_all_plans_together(stage: RunHarness) -> None:
    played = stage.run(
        plan(step("a"), step("b", "a")),
        step_reply("a", "A\nSURPRISE: more"),
        plan(*(step(name, "a") for name in "bcde")),
        step_reply("b", "B"),
        step_reply("c", "C"),
        composer_reply("Some."),
        max_steps=3,
    )
    assert played.statuses == {"a": "ok", "b": "ok", "c": "ok", "d": "skipped", "e": "skipped"}
    assert played.outcome.exit_code == 53
    assert played.outcome.error == "the plan has 2 steps more than the limit of 3"
