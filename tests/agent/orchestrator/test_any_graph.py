"""Property tests: the rules hold for any graph, results, interruptions, answers and replans."""

import heapq
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent.vocabulary.plan import PlanStep
from agent.vocabulary.unfinished import UnfinishedRun
from tests.agent.orchestrator.fake_orchestrator import EventJson, RunScript, StepScript
from tests.agent.orchestrator.virtual_time import run_in_virtual_time
from tests.docs.grammar import broken_rules

pytestmark = pytest.mark.slow
PLACES = ("", "a", "a/b", "c", ".")
ENDINGS = ("ok", "ok", "ok", "partial", "error", "timeout", "surprise", "bug", "blocked")


@st.composite
def plans(draw: st.DrawFn, prefix: str = "s", asks: bool = True) -> list[PlanStep]:
    """Draw a plan with edges in every direction, some unknown dependencies, questions and writers."""
    count = draw(st.integers(1, 8))
    steps = []
    for number in range(count):
        after = draw(st.sets(st.integers(0, 9), max_size=2)) - {number}
        is_question = asks and draw(st.integers(0, 9)) == 0
        writes = draw(st.sampled_from(PLACES))
        steps.append(
            PlanStep(
                id=f"{prefix}{number}",
                title=f"{prefix}{number}",
                instruction=f"do {prefix}{number} as {draw(st.sampled_from('xy'))}",
                type="ask_user" if is_question else "task",
                depends_on=tuple(f"{draw(st.sampled_from((prefix, 's')))}{dep}" for dep in sorted(after)),
                writes=(writes,) if writes else (),
            )
        )
    return steps


parts = st.builds(
    StepScript,
    takes_s=st.sampled_from((0.0, 0.5, 1.0, 2.0)),
    ends=st.sampled_from(ENDINGS),
    waits_s=st.sampled_from((0.0, 0.0, 3.0)),
)
step_scripts = st.fixed_dictionaries({f"{prefix}{number}": parts for prefix in "stu" for number in range(8)})


@st.composite
def run_scripts(draw: st.DrawFn) -> RunScript:
    """Draw a run with any combination of events."""
    later_plans: list[Sequence[PlanStep] | None] = []
    for prefix in ("t", "u"):
        later_plans.append(draw(st.one_of(st.none(), st.just([]), plans(prefix), plans("s"))))
    return RunScript(
        plan=draw(plans()),
        scripts=draw(step_scripts),
        later_plans=later_plans,
        plan_gap_s=draw(st.sampled_from((0.0, 0.0, 0.3, 1.0))),
        is_given=draw(st.booleans()),
        concurrency=draw(st.integers(1, 4)),
        replan=draw(st.sampled_from(("surprise", "surprise", "always", "never"))),
        max_replans=draw(st.integers(0, 3)),
    )


def endings_of(events: Sequence[EventJson]) -> dict[object, object]:
    endings = [(event["step_id"], event["status"]) for event in events if event["type"] == "step.completed"]
    assert len(dict(endings)) == len(endings), "a step ends once"
    return dict(endings)


def last_plan_of(events: Sequence[EventJson]) -> list[str]:
    plans_told = [event["steps"] for event in events if event["type"] == "plan"]
    return [step["id"] for step in plans_told[-1]] if plans_told else []  # type: ignore[attr-defined]


def clashes_of(events: Sequence[EventJson]) -> list[tuple[str, str]]:
    """Return the pairs of steps that ran concurrently although they write the same paths."""
    planned: dict[str, list[str]] = {}
    running: dict[str, list[str]] = {}
    clashes: list[tuple[str, str]] = []
    for event in events:
        if event["type"] == "plan":
            planned |= {step["id"]: step["writes"] for step in event["steps"]}  # type: ignore[attr-defined]
        elif event["type"] == "step.started":
            name, mine = str(event["step_id"]), planned[str(event["step_id"])]
            clashes += [
                (name, other)
                for other, theirs in running.items()
                if any(_touch(one, another) for one in mine for another in theirs)
            ]
            running[name] = mine
        elif event["type"] == "step.completed":
            running.pop(str(event["step_id"]), None)
    return clashes


@given(run_scripts())
def test_a_run_ends_and_every_step_of_its_plan_ends_exactly_once(script: RunScript) -> None:
    outcome, events = run_in_virtual_time(script.run())
    assert broken_rules(events) == []
    endings = endings_of(events)
    assert set(last_plan_of(events)) <= set(endings)
    assert script.max_running <= script.concurrency
    assert clashes_of(events) == []
    assert len(script.started) == len(set(script.started)), "nothing is worked on twice"
    assert (outcome.exit_code == 0) == (outcome.error is None)
    assert {response.task_id: response.status for response in outcome.responses} == endings


@given(run_scripts(), st.floats(0, 12))
def test_an_interruption_at_any_moment_ends_every_started_step(script: RunScript, cancel_at: float) -> None:
    outcome, events = run_in_virtual_time(script.run(cancel_at=cancel_at))
    assert broken_rules(events) == []
    assert not script.running
    assert {response.task_id: response.status for response in outcome.responses} == endings_of(events)
    assert outcome.error is not None or outcome.exit_code == 0


@given(run_scripts(), st.floats(0, 12), st.booleans())
def test_a_resumed_run_never_repeats_finished_steps(script: RunScript, cancel_at: float, knows_all: bool) -> None:
    _, events = run_in_virtual_time(script.run(cancel_at=cancel_at))
    announced = [event for event in events if event["type"] == "plan"]
    if not announced:
        return
    names = last_plan_of(events)
    known = {step.id: step for steps in (*(p for p in script.later_plans if p), script.plan) for step in steps}
    is_complete = announced[-1]["reason"] != "streaming"
    plan = tuple(known[name] for name in names if name in known) if knows_all else ()
    finished = {response.task_id for response in script.cache.values()}
    before = UnfinishedRun(
        run_id="run-1", lineage="run-1", request="do it", plan=plan, is_plan_complete=is_complete and bool(plan)
    )
    resumed = RunScript(
        plan=script.plan,
        scripts=script.scripts,
        later_plans=[script.plan],
        concurrency=script.concurrency,
        replan=script.replan,
        cache=script.cache,
    )
    outcome, events = run_in_virtual_time(resumed.run(unfinished=before))
    assert broken_rules(events) == []
    hits = {event["step_id"] for event in events if event["type"] == "step.started" and event["cache"] == "hit"}
    assert hits <= finished
    if plan == tuple(script.plan) and names == [step.id for step in plan]:
        assert not finished & set(resumed.started)
    assert outcome.exit_code == 0 or outcome.error


def list_schedule(steps: Sequence[PlanStep], takes_s: Mapping[str, float], slots: int) -> list[float]:
    """Return the end times if each step starts as soon as a slot is free, in the order of becoming ready."""
    known = {step.id for step in steps}
    missing = {step.id: {dep for dep in step.depends_on if dep in known} for step in steps}
    ready = [step for step in steps if not missing[step.id]]
    running: list[tuple[float, str]] = []
    writing: dict[str, tuple[str, ...]] = {}
    now, ends = 0.0, [0.0]
    while ready or running:
        for step in list(ready):
            others = [place for places in writing.values() for place in places]
            if len(running) < slots and not any(_touch(one, other) for one in step.writes for other in others):
                ready.remove(step)
                writing[step.id] = step.writes
                heapq.heappush(running, (now + takes_s[step.id], step.id))
        now, ended = heapq.heappop(running)
        ends.append(now)
        del writing[ended]
        for step in steps:
            if ended in missing[step.id]:
                missing[step.id].discard(ended)
                if not missing[step.id]:
                    ready.append(step)
    return ends


def _touch(one: str, other: str) -> bool:
    left, right = ([] if place == "." else place.split("/") for place in (one, other))
    return left[: len(right)] == right[: len(left)]


@given(st.integers(1, 14), st.integers(1, 5), st.integers(0, 2**32), st.booleans())
def test_a_graph_takes_as_long_as_its_list_schedule(count: int, slots: int, seed: int, has_writers: bool) -> None:
    random = Random(seed)
    steps = [
        PlanStep(
            id=f"s{number}",
            title="t",
            instruction="i",
            depends_on=tuple(f"s{dep}" for dep in range(number) if random.random() < 0.25),
            writes=(random.choice(PLACES[1:]),) if has_writers and random.random() < 0.4 else (),
        )
        for number in range(count)
    ]
    takes_s = {step.id: random.uniform(0.5, 5) for step in steps}
    scripts = {name: StepScript(takes_s=seconds) for name, seconds in takes_s.items()}
    script = RunScript(plan=steps, scripts=scripts, concurrency=slots, is_given=True)
    run_in_virtual_time(script.run())
    # The cache takes a moment to store the result of each step of the longest chain.
    slack, dust = 0.02 * count, 1e-6
    ends = list_schedule(steps, takes_s, slots)
    # Steps that end within such a moment may end in either order, and their dependents start in that order.
    assume(all(later - earlier > slack for earlier, later in pairwise(ends)))
    expected = ends[-1]
    assert expected - dust <= script.ended_at <= expected + slack
    longest = _critical_path(steps, takes_s)
    assert script.ended_at >= longest - dust
    if not has_writers:
        assert script.ended_at <= longest + (sum(takes_s.values()) - longest) / slots + slack


def _critical_path(steps: Sequence[PlanStep], takes_s: Mapping[str, float]) -> float:
    ends: dict[str, float] = {}
    for step in steps:
        ends[step.id] = takes_s[step.id] + max((ends[dep] for dep in step.depends_on), default=0.0)
    return max(ends.values())
