"""The ready queue: which steps may start, and which never can."""

from hypothesis import given
from hypothesis import strategies as st

from agent.execution.graph.ready_queue import ReadyQueue, cycle_reason
from agent.vocabulary.plan import PlanStep


def step(name: str, *after: str, writes: tuple[str, ...] = ()) -> PlanStep:
    return PlanStep(id=name, title=name, instruction=name, depends_on=after, writes=writes)


def queue(*steps: PlanStep) -> ReadyQueue:
    filled = ReadyQueue()
    for one in steps:
        filled.add(one)
    filled.seal()
    return filled


def names(steps: list[PlanStep]) -> list[str]:
    return [one.id for one in steps]


def test_a_step_is_ready_the_moment_its_last_dependency_succeeds() -> None:
    graph = queue(step("a"), step("b"), step("c", "a"), step("d", "a", "b"))
    assert names(graph.pop_ready(9)) == ["a", "b"]
    graph.finish("a", succeeded=True)
    assert names(graph.pop_ready(9)) == ["c"]
    graph.finish("b", succeeded=True)
    assert names(graph.pop_ready(9)) == ["d"]


def test_a_failed_step_skips_exactly_its_dependents_with_the_reason() -> None:
    graph = queue(step("a"), step("b", "a"), step("c", "b"), step("d"))
    graph.pop_ready(9)
    skipped = graph.finish("a", succeeded=False)
    assert [(one.id, reason) for one, reason in skipped] == [
        ("b", "needs a, which did not succeed"),
        ("c", "needs b, which did not succeed"),
    ]
    graph.finish("d", succeeded=True)
    assert graph.is_done


def test_steps_that_may_write_the_same_paths_do_not_overlap() -> None:
    graph = queue(
        step("a", writes=("src/x.py",)), step("b", writes=("src",)), step("c", writes=("docs/*.md",)), step("d")
    )
    assert names(graph.pop_ready(9)) == ["a", "c", "d"]
    assert graph.pop_ready(9) == []
    graph.finish("a", succeeded=True)
    assert names(graph.pop_ready(9)) == ["b"]


def test_a_common_name_prefix_is_not_a_conflict() -> None:
    assert names(queue(step("a", writes=("src",)), step("b", writes=("src2",))).pop_ready(9)) == ["a", "b"]


def test_a_dependency_that_does_not_exist_is_dropped_when_the_plan_is_complete() -> None:
    growing = ReadyQueue()
    growing.add(step("b", "a"))
    assert growing.pop_ready(9) == []
    growing.seal()
    assert names(growing.pop_ready(9)) == ["b"]


def test_a_step_may_depend_on_a_later_step_of_the_plan() -> None:
    graph = queue(step("b", "a"), step("a"))
    assert names(graph.pop_ready(9)) == ["a"]
    graph.finish("a", succeeded=True)
    assert names(graph.pop_ready(9)) == ["b"]


def test_a_step_added_after_its_dependency_failed_is_skipped_with_its_dependents() -> None:
    growing = ReadyQueue()
    growing.add(step("a"))
    growing.pop_ready(1)
    growing.finish("a", succeeded=False)
    assert growing.add(step("c", "b")) == []
    assert [(one.id, reason) for one, reason in growing.add(step("b", "a"))] == [
        ("b", "needs a, which did not succeed"),
        ("c", "needs b, which did not succeed"),
    ]


def test_a_cycle_is_reported_and_never_hangs() -> None:
    graph = queue(step("a", "b"), step("b", "a"), step("c"))
    assert names(graph.pop_ready(9)) == ["c"]
    assert graph.pop_cyclic() == []
    graph.finish("c", succeeded=True)
    assert [(one.id, reason) for one, reason in graph.pop_cyclic()] == [
        ("a", cycle_reason("b")),
        ("b", cycle_reason("a")),
    ]
    assert graph.is_done


def test_dependents_of_a_cycle_are_skipped_but_not_reported_as_part_of_it() -> None:
    graph = queue(step("a", "b"), step("b", "a"), step("c", "a"), step("d", "c"))
    assert {one.id: reason for one, reason in graph.pop_cyclic()} == {
        "a": cycle_reason("b"),
        "b": cycle_reason("a"),
        "c": "needs a, which did not succeed",
        "d": "needs c, which did not succeed",
    }


def test_steps_that_write_the_same_path_run_in_the_order_they_became_ready() -> None:
    graph = queue(*(step(name, writes=("x", "y")) for name in "abc"), step("d", writes=("y/z",)), step("e"))
    order = names(graph.pop_ready(9))
    assert order == ["a", "e"]
    for _ in range(3):
        graph.finish(order[-1] if order[-1] != "e" else "a", succeeded=True)
        order += names(graph.pop_ready(9))
    assert order == ["a", "e", "b", "c", "d"]


def test_a_paused_step_frees_its_slot_but_keeps_its_write_locks() -> None:
    graph = queue(step("a", writes=("x",)), step("b", writes=("x",)), step("c"))
    assert names(graph.pop_ready(1)) == ["a"]
    assert graph.active_count == 1
    graph.pause("a")
    assert graph.active_count == 0
    assert names(graph.pop_ready(1)) == ["c"]
    graph.resume("a")
    assert graph.active_count == 2
    graph.finish("a", succeeded=True)
    assert names(graph.pop_ready(9)) == ["b"]


def test_a_revision_replaces_only_unstarted_steps() -> None:
    graph = queue(step("a"), step("b", "a"), step("c", "b"), step("d", writes=("x",)))
    assert names(graph.pop_ready(9)) == ["a", "d"]
    skipped = graph.revise([step("e", "f"), step("f", "a", "b"), step("c", "d")])
    assert skipped == []
    graph.finish("a", succeeded=True)
    assert names(graph.pop_ready(9)) == ["f"]
    assert not graph.is_unstarted("b") and graph.is_unstarted("c")
    graph.finish("f", succeeded=True)
    graph.finish("d", succeeded=True)
    assert names(graph.pop_ready(9)) == ["e", "c"]


def test_a_revision_skips_steps_that_depend_on_a_failed_step() -> None:
    graph = queue(step("a"), step("b", "a"))
    graph.pop_ready(9)
    graph.finish("a", succeeded=False)
    assert graph.revise([step("c", "a"), step("d")]) == [(step("c", "a"), "needs a, which did not succeed")]
    assert names(graph.pop_ready(9)) == ["d"]


edges = st.lists(st.sets(st.integers(0, 11), max_size=4), min_size=1, max_size=12)


@given(edges, st.sets(st.integers(0, 11)), st.integers(1, 4), st.randoms())
def test_every_step_of_any_graph_ends_in_exactly_one_way(graph_edges, failing, slots, random) -> None:  # type: ignore[no-untyped-def]
    steps = [step(str(n), *(str(dep) for dep in sorted(deps) if dep != n)) for n, deps in enumerate(graph_edges)]
    known = {one.id for one in steps}
    graph = queue(*steps)
    succeeded: set[str] = set()
    ended: list[str] = []
    running: list[PlanStep] = []
    while not graph.is_done:
        running += graph.pop_ready(slots - len(running))
        assert len(running) <= slots
        if not running:
            ended += [one.id for one, _ in graph.pop_cyclic()]
            continue
        one = running.pop(random.randrange(len(running)))
        assert all(dep in succeeded for dep in one.depends_on if dep in known)
        fails = int(one.id) in failing
        ended.append(one.id)
        if not fails:
            succeeded.add(one.id)
        ended += [other.id for other, _ in graph.finish(one.id, succeeded=not fails)]
    assert sorted(ended) == sorted(known)
