"""Topological order, levels, critical path and cycles of plans."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from agent.planning.graph import critical_path, find_cycle, levels, topological_order
from agent.vocabulary.plan import PlanStep, StepType


def step(name: str, *after: str, type: StepType = "task") -> PlanStep:
    return PlanStep(id=name, title=name, instruction=name, depends_on=after, type=type)


def test_dependencies_come_first_and_the_order_is_otherwise_stable() -> None:
    ordered = topological_order([step("c", "b"), step("b", "a"), step("x"), step("a"), step("y", "gone")])
    assert [one.id for one in ordered] == ["x", "a", "b", "c", "y"]


def test_a_cycle_loses_no_step() -> None:
    assert {one.id for one in topological_order([step("a", "b"), step("b", "a"), step("c")])} == {"a", "b", "c"}


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=10))
def test_any_acyclic_graph_is_ordered_completely_by_its_dependencies(edges: list[list[int]]) -> None:
    steps = [step(str(n), *(str(dep) for dep in deps if dep < n)) for n, deps in enumerate(edges)]
    ordered = [one.id for one in topological_order(list(reversed(steps)))]
    assert sorted(ordered) == sorted(one.id for one in steps)
    assert all(ordered.index(dep) < ordered.index(one.id) for one in steps for dep in one.depends_on)


def test_steps_of_one_level_do_not_depend_on_each_other() -> None:
    steps = [step("a"), step("b"), step("c", "a"), step("d", "c", "b", "gone"), step("e", "b")]
    assert levels(steps) == {"a": 0, "b": 0, "c": 1, "d": 2, "e": 1}


def test_the_critical_path_is_the_heaviest_chain() -> None:
    steps = [step("a"), step("b", type="tool"), step("c", "b", type="tool"), step("d", "a", "c")]
    assert critical_path(steps) == ("a", "d")
    assert critical_path([step("q", type="ask_user"), step("a", "q"), step("b")]) == ("q", "a")
    assert critical_path([]) == ()


def test_a_cycle_is_returned_in_order() -> None:
    assert find_cycle([step("a", "b"), step("b", "c"), step("c", "b"), step("d", "gone")]) == ("b", "c", "b")
    assert find_cycle([step("a", "a")]) == ("a", "a")
    assert find_cycle([step("x"), step("y", "x", "gone")]) == ()


@given(st.lists(st.lists(st.integers(0, 7), max_size=3), min_size=1, max_size=8))
def test_a_cycle_is_found_exactly_if_there_is_one(edges: list[list[int]]) -> None:
    steps = [step(str(n), *map(str, deps)) for n, deps in enumerate(edges)]
    needs = {one.id: set(one.depends_on) for one in steps}
    found = find_cycle(steps)
    assert all(after in needs[before] for before, after in itertools.pairwise(found))
    left = dict(needs)
    while free := [name for name, deps in left.items() if not deps & left.keys()]:
        for name in free:
            del left[name]
    assert bool(found) == bool(left)


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=10))
def test_levels_and_critical_path_agree_with_the_dependencies(edges: list[list[int]]) -> None:
    steps = [step(str(n), *(str(dep) for dep in deps if dep < n)) for n, deps in enumerate(edges)]
    place, path, by_id = levels(steps), critical_path(steps), {one.id: one for one in steps}
    assert all(place[one.id] > place[dep] for one in steps for dep in one.depends_on)
    assert all(before in by_id[after].depends_on for before, after in itertools.pairwise(path))
    assert len(path) == max(place.values()) + 1
