"""From raw objects to steps."""

from hypothesis import given
from hypothesis import strategies as st

from agent.planning.steps import StepMaker, in_order, only_step
from agent.vocabulary.plan import PlanStep


def step(name: str, *after: str) -> PlanStep:
    return PlanStep(id=name, title=name, instruction=name, depends_on=after)


def test_what_a_planner_leaves_out_is_filled_in() -> None:
    made = StepMaker("do it").make({})
    assert (made.id, made.title, made.instruction, made.type) == ("step1", "do it", "do it", "task")


def test_misshapen_fields_become_defaults_instead_of_errors() -> None:
    made = StepMaker("r").make({"id": 3, "depends_on": {"a": 1}, "writes": [1, None, "x"], "type": "weird"})
    assert (made.id, made.depends_on, made.writes, made.type) == ("3", (), ("1", "x"), "task")


def test_one_dependency_needs_no_brackets() -> None:
    assert StepMaker("r").make({"id": "b", "depends_on": "a"}).depends_on == ("a",)


def test_half_a_character_in_a_name_does_no_harm() -> None:
    made = StepMaker("r").make({"id": "a\ud800", "title": "t\udfff", "depends_on": ["b\ud800"]})
    assert (made.id, made.title, made.depends_on) == ("a?", "t?", ("b?",))


def test_ids_are_unique_and_a_step_never_waits_for_itself() -> None:
    maker = StepMaker("r")
    made = [maker.make({"id": "a", "depends_on": ["a", "b", "b"]}) for _ in range(3)]
    assert [one.id for one in made] == ["a", "a-2", "a-3"]
    assert made[0].depends_on == ("b",)


def test_a_question_without_text_or_options_gets_both() -> None:
    made = StepMaker("Which colour?").make({"type": "ask_user"})
    assert (made.ask_question, made.ask_options) == ("Which colour?", ("Yes", "No"))


def test_a_request_that_cannot_be_planned_is_one_step() -> None:
    assert (only_step("line one\nline two").title, only_step("x").instruction) == ("line one", "x")


def test_dependencies_come_first_and_the_rest_keeps_its_order() -> None:
    ordered = in_order([step("c", "b"), step("b", "a"), step("x"), step("a"), step("y", "gone")])
    assert [one.id for one in ordered] == ["x", "a", "b", "c", "y"]


def test_a_cycle_loses_no_step() -> None:
    assert {one.id for one in in_order([step("a", "b"), step("b", "a"), step("c")])} == {"a", "b", "c"}


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=10))
def test_any_graph_is_ordered_completely_and_each_acyclic_dependency_is_respected(edges: list[list[int]]) -> None:
    steps = [step(str(n), *(str(dep) for dep in deps if dep < n)) for n, deps in enumerate(edges)]
    ordered = [one.id for one in in_order(list(reversed(steps)))]
    assert sorted(ordered) == sorted(one.id for one in steps)
    assert all(ordered.index(dep) < ordered.index(one.id) for one in steps for dep in one.depends_on)
