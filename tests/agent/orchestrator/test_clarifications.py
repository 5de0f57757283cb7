"""Questions of a planner: an answer changes the plan, and so does nobody being there to give one."""

from agent.vocabulary.plan import Plan, PlanStep
from tests.agent.orchestrator.run_harness import RunHarness
from tests.cli.terminal_user import composer_reply, plan, step, step_reply


def question(name: str = "q", words: str = "Which?") -> dict[str, object]:
    return {"id": name, "title": words, "type": "ask_user", "ask_question": words, "ask_options": ["A", "B"]}


def test_an_answer_joins_the_request_and_the_rest_is_planned_again(stage: RunHarness) -> None:
    stage.is_user_present, stage.answers = True, ["B"]
    seen = "Request: do it\n\nQuestion: Which?\nAnswer: B"
    played = stage.run(
        plan(question(), step("a", "q")),
        {**plan(step("b")), "match": {"purpose": "planner", "contains": seen}},
        {**step_reply("b", "B it is"), "match": {"step": "b", "contains": "Answer: B"}},
        {"match": {"purpose": "composer", "contains": seen}, "text": "B it is."},
    )
    assert (played.outcome.exit_code, played.outcome.answer) == (0, "B it is.")
    assert played.statuses == {"q": "ok", "b": "ok"}
    assert played.plans[-1] == ("answer: Which? — B", "- a Title of a\n+ b Title of b")


def test_an_answer_that_changes_nothing_is_told_so_that_nobody_plans_with_it_again(stage: RunHarness) -> None:
    stage.is_user_present, stage.answers = True, ["B"]
    steps = (question(), step("a", "q"))
    played = stage.run(plan(*steps), plan(steps[1]), step_reply("a", "A"), composer_reply("Done."))
    assert (played.plans[-1], played.statuses) == (("answer: Which? — B", None), {"q": "ok", "a": "ok"})


def test_an_answer_serves_the_old_plan_when_no_new_one_can_be_made(stage: RunHarness) -> None:
    stage.is_user_present, stage.answers = True, ["B"]
    played = stage.run(
        plan(question(), step("a", "q")),
        {"match": {"purpose": "planner"}, "text": "hm"},
        {**step_reply("a", "done with B"), "match": {"step": "a", "contains": '<result step="q"'}},
        composer_reply("Done."),
    )
    assert played.statuses == {"q": "ok", "a": "ok"}


def test_without_anybody_to_ask_the_work_goes_on_with_an_assumption(stage: RunHarness) -> None:
    played = stage.run(
        plan(question(), step("a", "q")),
        {**plan(step("a")), "match": {"purpose": "planner", "contains": "nobody can be asked 'Which\\?'"}},
        step_reply("a", "assumed A"),
        {"match": {"purpose": "composer", "contains": "assumed, because nobody could be asked"}, "text": "A, assumed."},
    )
    assert (played.outcome.exit_code, played.outcome.answer) == (0, "A, assumed.")
    assert played.statuses == {"q": "needs_input", "a": "ok"}
    assert played.plans[-1] == ("assumption: nobody could be asked 'Which?'", "- q Which?\n~ a Title of a")
    assert played.of_type("question.answered")[0]["answer"] is None


def test_a_question_that_stays_open_is_the_error_of_the_run(stage: RunHarness) -> None:
    played = stage.run(plan(question(), step("a", "q")), {"match": {"purpose": "planner"}, "text": "hm"})
    assert (played.outcome.exit_code, played.outcome.error) == (1, "the question stayed open: Which?")
    assert played.statuses == {"q": "needs_input", "a": "skipped"}


def test_assumptions_are_planned_with_once(stage: RunHarness) -> None:
    played = stage.run(
        plan(question(), step("a", "q")),
        plan(question("q2", "And which?"), step("a", "q2")),
    )
    assert played.statuses == {"q": "needs_input", "q2": "needs_input", "a": "skipped"}
    assert (played.outcome.exit_code, played.outcome.error) == (1, "the question stayed open: And which?")


def test_a_third_question_is_not_asked(stage: RunHarness) -> None:
    stage.is_user_present, stage.answers = True, ["B", "A", "never said"]
    played = stage.run(
        plan(question("q1", "One?"), step("a", "q1")),
        plan(question("q2", "Two?"), step("a", "q2")),
        plan(question("q3", "Three?"), step("a", "q3")),
        plan(step("a")),
        step_reply("a", "done"),
        composer_reply("Done, one thing assumed."),
    )
    assert [event["question"] for event in played.of_type("question.asked")] == ["One?", "Two?"]
    assert played.statuses == {"q1": "ok", "q2": "ok", "q3": "needs_input", "a": "ok"}
    assert played.outcome.exit_code == 0


def test_clarifications_do_not_use_up_the_replans(stage: RunHarness) -> None:
    stage.is_user_present, stage.answers = True, ["B"]
    played = stage.run(
        plan(question(), step("a", "q")),
        plan(step("b"), step("c", "b")),
        step_reply("b", "B\nSURPRISE: more"),
        plan(step("d", "b")),
        step_reply("d", "D"),
        composer_reply("D."),
        max_replans=1,
    )
    assert played.statuses == {"q": "ok", "b": "ok", "d": "ok"}
    assert played.warnings == []


def test_questions_are_no_surprises(stage: RunHarness) -> None:
    stage.is_user_present, stage.answers = True, ["B"]
    played = stage.run(
        plan(question(), step("a", "q")), plan(step("b")), step_reply("b", "B"), composer_reply("B."), replan="never"
    )
    assert played.statuses == {"q": "ok", "b": "ok"}


def test_in_a_given_plan_an_answer_is_a_result_like_any_other(stage: RunHarness) -> None:
    asking = PlanStep(id="q", title="q", instruction="Which?", type="ask_user", ask_question="Which?")
    after = PlanStep(id="a", title="a", instruction="Do a", depends_on=("q",))
    stage.plan = Plan(steps=(asking, after), reason="file")
    stage.is_user_present, stage.answers = True, ["B"]
    played = stage.run(
        {**step_reply("a", "took B"), "match": {"step": "a", "contains": "B"}}, composer_reply("Took B.")
    )
    assert played.statuses == {"q": "ok", "a": "ok"}
    assert [reason for reason, _ in played.plans] == ["file"]
