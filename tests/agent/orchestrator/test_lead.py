"""The lead works on a request itself, or hands out steps and reads their results."""

import itertools

from agent.model.port import ModelRequest
from tests.agent.orchestrator.lead_runs import AUTO, FAILS, lead_requests, plan_results
from tests.agent.orchestrator.run_harness import RunHarness
from tests.cli.terminal_user import hand_out, lead_call, lead_reply, step, step_call, step_reply


def test_a_question_takes_one_request_and_its_answer_streams(harness: RunHarness, requests: list[ModelRequest]) -> None:
    run = harness.run(lead_reply("Four, of course."), **AUTO)
    assert (run.outcome.exit_code, run.outcome.answer, len(requests)) == (0, "Four, of course.", 1)
    fragments = [event["content"] for event in run.of_type("message") if event.get("delta")]
    assert len(fragments) > 1 and "".join(map(str, fragments)) == "Four, of course."
    assert run.statuses == {"lead": "ok"}
    assert [reason for reason, _ in run.plans] == ["request"]


def test_one_command_takes_two_requests(harness: RunHarness, requests: list[ModelRequest]) -> None:
    run = harness.run(lead_call("run_command", command="echo hi"), lead_reply("It says hi."), **AUTO)
    assert (run.outcome.exit_code, run.outcome.answer, len(requests)) == (0, "It says hi.", 2)


def test_planning_never_offers_no_plan_tool(harness: RunHarness, requests: list[ModelRequest]) -> None:
    run = harness.run(lead_reply("Done."), planning="never")
    assert run.outcome.exit_code == 0
    assert "plan" not in str(requests[0].tools)


def test_steps_of_the_lead_run_side_by_side_and_their_results_come_back(
    harness: RunHarness, requests: list[ModelRequest]
) -> None:
    run = harness.run(
        hand_out(step("a"), step("b"), step("c", "a", "b")),
        step_call("a", "run_command", command="while ! test -e b; do sleep 0.02; done; touch a"),
        step_call("b", "run_command", command="touch b; while ! test -e a; do sleep 0.02; done"),
        step_reply("a", "A is done"),
        step_reply("b", "B is done"),
        step_reply("c", "C is done"),
        lead_reply("All there [a], [c]."),
        **AUTO,
    )
    assert (run.outcome.exit_code, run.outcome.answer) == (0, "All there [a], [c].")
    assert run.statuses == {"a": "ok", "b": "ok", "c": "ok", "lead": "ok"}
    [result] = plan_results(run)
    assert [text in result for text in ("A is done", "B is done", "C is done")] == [True] * 3
    assert len(lead_requests(requests)) == 2


def test_a_step_starts_while_its_plan_is_still_being_written(harness: RunHarness) -> None:
    slow = {**hand_out(step("a"), step("b"), step("c")), "chunks": 12, "chunk_delay_ms": 60}
    run = harness.run(slow, *(step_reply(name, name) for name in "abc"), lead_reply("abc"), **AUTO)
    kinds = [(event["type"], event.get("step_id")) for event in run.events]
    assert kinds.index(("step.started", "a")) < kinds.index(("tool.started", "lead"))
    assert run.outcome.exit_code == 0


def test_a_failed_step_comes_back_early_and_a_new_plan_mends_it(harness: RunHarness) -> None:
    run = harness.run(
        hand_out(step("a"), step("b", "a")),
        FAILS,
        hand_out(step("x"), step("b", "x")),
        step_reply("x", "X instead"),
        step_reply("b", "B"),
        lead_reply("Done another way."),
        **AUTO,
    )
    assert run.statuses == {"a": "error", "x": "ok", "b": "ok", "lead": "ok"}
    early, late = plan_results(run)
    assert "Not started: b." in early and "a failed" in early
    assert "X instead" in late and "B" in late
    assert (run.outcome.exit_code, run.outcome.error) == (0, None)


def test_a_failed_step_that_nobody_mends_fails_the_run(harness: RunHarness) -> None:
    run = harness.run(
        hand_out(step("a"), step("c")),
        FAILS,
        step_reply("c", "C"),
        lead_reply("Only C.", repeat=True),
        **AUTO,
    )
    assert (run.outcome.exit_code, run.outcome.subtype, run.outcome.answer) == (1, "partial", "Only C.")


def test_the_lead_mends_a_failed_step_itself(harness: RunHarness) -> None:
    run = harness.run(
        hand_out(step("a")), FAILS, lead_call("write_file", path="a.txt", content="a"), lead_reply("Done."), **AUTO
    )
    assert (run.outcome.exit_code, run.statuses) == (0, {"a": "error", "lead": "ok"})


def test_without_a_decision_the_dependents_of_a_failed_step_are_skipped(harness: RunHarness) -> None:
    run = harness.run(hand_out(step("a"), step("b", "a")), FAILS, hand_out(), lead_reply("Neither works."), **AUTO)
    assert run.statuses == {"a": "error", "b": "skipped", "lead": "ok"}
    assert "Not run: needs a" in plan_results(run)[-1]
    assert run.outcome.exit_code == 1


def test_results_do_not_come_back_early_more_often_than_allowed(harness: RunHarness) -> None:
    run = harness.run(hand_out(step("a"), step("b", "a")), FAILS, lead_reply("Does not work."), max_replans=0, **AUTO)
    assert run.statuses == {"a": "error", "b": "skipped", "lead": "ok"}
    assert len(plan_results(run)) == 1


def test_a_fast_failure_while_the_plan_is_still_being_written_is_not_lost(harness: RunHarness) -> None:
    slow = {**hand_out(step("a"), step("b", "a"), step("c")), "chunks": 12, "chunk_delay_ms": 100}
    run = harness.run(
        slow,
        FAILS,
        step_reply("c", "C"),
        hand_out(step("x"), step("b", "x")),
        step_reply("x", "X"),
        step_reply("b", "B"),
        lead_reply("All."),
        **AUTO,
    )
    assert run.statuses == {"a": "error", "c": "ok", "x": "ok", "b": "ok", "lead": "ok"}
    assert run.outcome.exit_code == 0


def test_the_lead_cancels_a_step(harness: RunHarness) -> None:
    run = harness.run(
        hand_out(step("a"), step("b"), step("c", "b")),
        step_call("b", "run_command", command="sleep 60"),
        {**FAILS, "delay_ms": 300},
        hand_out(cancel=["b", "c"]),
        lead_reply("b is not needed."),
        **AUTO,
    )
    assert run.statuses == {"a": "error", "b": "cancelled", "lead": "ok"}
    assert "Cancelled by the lead." in str([event["summary"] for event in run.of_type("step.completed")])
    assert run.outcome.exit_code == 1, "nobody did the work of a"


def test_a_step_that_the_lead_cancelled_is_no_failure(harness: RunHarness) -> None:
    run = harness.run(
        hand_out(step("a"), step("b"), step("c", "b")),
        step_call("b", "run_command", command="sleep 60"),
        {**step_reply("a", "A\nSURPRISE: b is not needed"), "delay_ms": 300},
        hand_out(cancel=["b", "c"]),
        lead_reply("Only a was needed."),
        **AUTO,
    )
    assert run.statuses == {"a": "ok", "b": "cancelled", "lead": "ok"}
    assert (run.outcome.exit_code, run.outcome.error) == (0, None)


def test_the_lead_waits_for_the_rest_after_an_early_return(harness: RunHarness) -> None:
    run = harness.run(
        hand_out(step("a"), step("b")),
        FAILS,
        {**step_reply("b", "B at last"), "delay_ms": 700},
        hand_out(),
        lead_reply("b works."),
        **AUTO,
    )
    early, late = plan_results(run)
    assert "Still running: b." in early and "B at last" in late
    assert run.statuses == {"a": "error", "b": "ok", "lead": "ok"}


def test_an_answer_while_steps_run_waits_for_their_results(harness: RunHarness, requests: list[ModelRequest]) -> None:
    run = harness.run(
        hand_out(step("a"), step("b")),
        FAILS,
        {**step_reply("b", "B at last"), "delay_ms": 700},
        lead_reply("I think that is all."),
        lead_reply("b works, a does not."),
        **AUTO,
    )
    assert run.outcome.answer == "b works, a does not."
    assert "B at last" in lead_requests(requests)[-1].messages[-1].content
    assert lead_requests(requests)[-1].messages[-1].role == "user"


def test_a_failure_after_the_answer_is_told_before_its_dependents_are_given_up(harness: RunHarness) -> None:
    run = harness.run(
        hand_out(step("a"), step("b"), step("c", "b")),
        FAILS,
        {"match": {"step": "b"}, "fault": "refused", "delay_ms": 700},
        lead_reply("I think that is all."),
        lead_reply("Nothing works."),
        lead_reply("Really nothing."),
        **AUTO,
    )
    assert run.statuses == {"a": "error", "b": "error", "c": "skipped", "lead": "ok"}
    assert run.outcome.exit_code == 1


def test_one_step_at_a_time_leaves_room_for_the_steps_of_the_lead(harness: RunHarness) -> None:
    run = harness.run(
        hand_out(step("a"), step("b"), step("c", "a")),
        *(step_reply(name, name) for name in "abc"),
        lead_reply("abc"),
        concurrency=1,
        **AUTO,
    )
    assert (run.outcome.exit_code, len(run.statuses)) == (0, 4)


def test_a_budget_that_the_lead_exhausts_gives_a_partial_answer(harness: RunHarness) -> None:
    run = harness.run(
        hand_out(step("a")),
        {**step_reply("a", "a is done"), "usage": {"input_tokens": 98_500, "output_tokens": 1000}},
        lead_reply("never said"),
        max_tokens=100_000,
        max_output_tokens=9000,
        **AUTO,
    )
    assert (run.outcome.exit_code, run.outcome.subtype) == (56, "error_budget")
    assert run.outcome.answer.startswith("a is done\n\nStopped: ")
    assert (run.outcome.resume or "").startswith("agent resume ")


def test_a_budget_that_a_step_exhausts_ends_the_run(harness: RunHarness) -> None:
    run = harness.run(
        hand_out(step("a"), step("b", "a")),
        {**step_call("a", "run_command", command="true"), "usage": {"input_tokens": 99_000, "output_tokens": 900}},
        max_tokens=100_000,
        max_output_tokens=9000,
        **AUTO,
    )
    assert (run.outcome.exit_code, run.outcome.subtype) == (56, "error_budget")
    assert run.statuses == {"a": "error", "b": "skipped", "lead": "error"}


def test_a_forked_step_begins_with_the_bytes_of_the_leads_request(
    harness: RunHarness, requests: list[ModelRequest]
) -> None:
    run = harness.run(
        lead_call("run_command", command="echo looked"),
        hand_out(step("a", context="fork"), step("b")),
        step_reply("a", "A"),
        step_reply("b", "B"),
        lead_reply("Both."),
        **AUTO,
    )
    assert run.outcome.exit_code == 0
    planned = lead_requests(requests)[1]
    forked = next(request for request in requests if request.step_id == "a")
    fresh = next(request for request in requests if request.step_id == "b")
    assert forked.messages[:-1] == planned.messages
    assert forked.tools == planned.tools
    assert "Your step: Do a" in forked.messages[-1].content
    assert len(fresh.messages) == 2 and "looked" not in fresh.messages[-1].content


def test_the_next_request_of_the_lead_begins_with_the_previous_one(
    harness: RunHarness, requests: list[ModelRequest]
) -> None:
    harness.run(
        lead_call("run_command", command="echo looked"),
        hand_out(step("a")),
        step_reply("a", "A"),
        lead_reply(""),
        lead_reply("Done."),
        **AUTO,
    )
    leads = lead_requests(requests)
    assert len(leads) >= 4
    for before, after in itertools.pairwise(leads):
        assert after.messages[: len(before.messages)] == before.messages
        assert after.tools == before.tools
