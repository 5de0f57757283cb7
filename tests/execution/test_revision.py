"""The rest of a plan, planned again."""

from agent.execution.revision import revised
from agent.vocabulary.plan import PlanStep


def step(name: str, *after: str, do: str = "") -> PlanStep:
    return PlanStep(id=name, title=name, instruction=do or f"do {name}", depends_on=after)


def test_new_work_that_waits_for_the_failed_step_it_replaces_does_not_wait() -> None:
    failed = step("a")
    again = [step("b", "a", do="do a in another way"), step("c", "b", "a")]
    revision = revised([failed, step("c", "a")], again, waiting={"c"}, used={"a": failed}, leaving={"a"})
    assert [(one.id, one.depends_on) for one in revision.rest] == [("b", ()), ("c", ("b",))]


def test_new_work_under_the_name_of_the_failed_step_is_what_others_wait_for() -> None:
    failed = step("a")
    again = [step("a", do="do a in another way"), step("c", "a")]
    revision = revised([failed, step("c", "a")], again, waiting={"c"}, used={"a": failed}, leaving={"a"})
    assert [(one.id, one.depends_on) for one in revision.rest] == [("a-2", ()), ("c", ("a-2",))]
