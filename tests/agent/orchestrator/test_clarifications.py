"""Questions of a planner: an answer, or the lack of a user, changes the plan."""

from agent.execution.result.run_status import ASK_IN_TERMINAL
from agent.execution.step.step_status import unanswered
from agent.vocabulary.plan import Plan, PlanStep
from tests.agent.orchestrator.run_harness import RunHarness
from tests.cli.terminal_user import composer_reply, plan, step, step_reply


def question(name: str = "q", words: str = "Which?") -> dict[str, object]:
    return {"id": name, "title": words, "type": "ask_user", "ask_question": words, "ask_options": ["A", "B"]}


def test_an_answer_is_added_to_the_request_and_leads_to_replanning(harness: RunHarness) -> None:
    harness.is_user_present, harness.answers = True, ["B"]
    seen = "Request: do it\n\nQuestion: Which?\nAnswer: B"
    run = harness.run(
        plan(question(), step("a", "q")),
        {**plan(step("b")), "match": {"purpose": "planner", "contains": seen}},
        {**step_reply("b", "B it is"), "match": {"step": "b", "contains": "Answer: B"}},
        {"match": {"purpose": "composer", "contains": seen}, "text": "B it is."},
    )
    assert (run.outcome.exit_code, run.outcome.answer) == (0, "B it is.")
    assert run.statuses == {"q": "ok", "b": "ok"}
    assert run.plans[-1] == ("answer: Which? — B", "- a Title of a\n+ b Title of b")


def test_an_answer_that_does_not_change_the_plan_is_announced(harness: RunHarness) -> None:
    harness.is_user_present, harness.answers = True, ["B"]
    steps = (question(), step("a", "q"))
    run = harness.run(plan(*steps), plan(steps[1]), step_reply("a", "A"), composer_reply("Done."))
    assert (run.plans[-1], run.statuses) == (("answer: Which? — B", None), {"q": "ok", "a": "ok"})


def test_the_old_plan_continues_with_the_answer_if_replanning_fails(harness: RunHarness) -> None:
    harness.is_user_present, harness.answers = True, ["B"]
    run = harness.run(
        plan(question(), step("a", "q")),
        {"match": {"purpose": "planner"}, "text": "hm"},
        {**step_reply("a", "done with B"), "match": {"step": "a", "contains": '<result step="q"'}},
        composer_reply("Done."),
    )
    assert run.statuses == {"q": "ok", "a": "ok"}


def test_without_a_user_the_run_continues_with_an_assumption_and_is_no_success(harness: RunHarness) -> None:
    run = harness.run(
        plan(question(), step("a", "q")),
        {**plan(step("a")), "match": {"purpose": "planner", "contains": "nobody can be asked 'Which\\?'"}},
        step_reply("a", "assumed A"),
        {"match": {"purpose": "composer", "contains": "assumed, because nobody could be asked"}, "text": "A, assumed."},
    )
    assert (run.outcome.exit_code, run.outcome.subtype, run.outcome.answer) == (1, "partial", "A, assumed.")
    assert (run.outcome.error, run.outcome.hint) == (unanswered("Which?"), ASK_IN_TERMINAL)
    assert run.statuses == {"q": "needs_input", "a": "ok"}
    assert run.plans[-1] == ("assumption: no user to answer 'Which?'", "- q Which?\n~ a Title of a")
    assert run.of_type("question.answered")[0]["answer"] is None


def test_an_unanswered_question_is_the_error_of_the_run(harness: RunHarness) -> None:
    run = harness.run(plan(question(), step("a", "q")), {"match": {"purpose": "planner"}, "text": "hm"})
    assert (run.outcome.exit_code, run.outcome.error) == (1, unanswered("Which?"))
    assert run.statuses == {"q": "needs_input", "a": "skipped"}


def test_an_assumption_leads_to_replanning_only_once(harness: RunHarness) -> None:
    run = harness.run(
        plan(question(), step("a", "q")),
        plan(question("q2", "And which?"), step("a", "q2")),
    )
    assert run.statuses == {"q": "needs_input", "q2": "needs_input", "a": "skipped"}
    assert (run.outcome.exit_code, run.outcome.error) == (1, unanswered("And which?"))


def test_a_third_question_is_not_asked(harness: RunHarness) -> None:
    harness.is_user_present, harness.answers = True, ["B", "A", "never said"]
    run = harness.run(
        plan(question("q1", "One?"), step("a", "q1")),
        plan(question("q2", "Two?"), step("a", "q2")),
        plan(question("q3", "Three?"), step("a", "q3")),
        plan(step("a")),
        step_reply("a", "done"),
        composer_reply("Done, one thing assumed."),
    )
    assert [event["question"] for event in run.of_type("question.asked")] == ["One?", "Two?"]
    assert run.statuses == {"q1": "ok", "q2": "ok", "q3": "needs_input", "a": "ok"}
    assert run.outcome.exit_code == 0


def test_clarifications_do_not_use_up_the_replans(harness: RunHarness) -> None:
    harness.is_user_present, harness.answers = True, ["B"]
    run = harness.run(
        plan(question(), step("a", "q")),
        plan(step("b"), step("c", "b")),
        step_reply("b", "B\nSURPRISE: more"),
        plan(step("d", "b")),
        step_reply("d", "D"),
        composer_reply("D."),
        max_replans=1,
    )
    assert run.statuses == {"q": "ok", "b": "ok", "d": "ok"}
    assert run.warnings == []


def test_answers_lead_to_replanning_even_if_replan_is_never(harness: RunHarness) -> None:
    harness.is_user_present, harness.answers = True, ["B"]
    run = harness.run(
        plan(question(), step("a", "q")), plan(step("b")), step_reply("b", "B"), composer_reply("B."), replan="never"
    )
    assert run.statuses == {"q": "ok", "b": "ok"}


def test_in_a_plan_file_an_answer_does_not_lead_to_replanning(harness: RunHarness) -> None:
    asking = PlanStep(id="q", title="q", instruction="Which?", type="ask_user", ask_question="Which?")
    after = PlanStep(id="a", title="a", instruction="Do a", depends_on=("q",))
    harness.plan = Plan(steps=(asking, after), reason="file")
    harness.is_user_present, harness.answers = True, ["B"]
    run = harness.run({**step_reply("a", "took B"), "match": {"step": "a", "contains": "B"}}, composer_reply("Took B."))
    assert run.statuses == {"q": "ok", "a": "ok"}
    assert [reason for reason, _ in run.plans] == ["file"]
