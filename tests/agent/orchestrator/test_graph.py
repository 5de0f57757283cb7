"""The graph at work: when steps start, what is announced of them, and what one of them means for the others."""

import asyncio

import pytest

from agent.execution.graph.run_state import PlanLog
from agent.protocol.channel import Channel, LogWriteError
from agent.vocabulary.plan import PlanStep
from tests.agent.orchestrator.fake_orchestrator import EventJson, RunScript, StepScript
from tests.agent.orchestrator.virtual_time import Deadlock, run_in_virtual_time
from tests.docs.grammar import broken_rules


def step(name: str, *after: str) -> PlanStep:
    return PlanStep(id=name, title=name, instruction=f"do {name}", depends_on=after)


def played(show: RunScript) -> list[EventJson]:
    _, events = run_in_virtual_time(show.run())
    assert broken_rules(events) == []
    return events


def endings(events: list[EventJson]) -> dict[object, object]:
    return {event["step_id"]: event["status"] for event in events if event["type"] == "step.completed"}


def summaries(events: list[EventJson]) -> dict[object, object]:
    return {event["step_id"]: event["summary"] for event in events if event["type"] == "step.completed"}


def test_the_first_step_starts_and_ends_before_the_plan_is_complete() -> None:
    events = played(RunScript(plan=[step("a"), step("b"), step("c", "b")], plan_gap_s=5.0))
    kinds = [(event["type"], event.get("step_id") or event.get("reason")) for event in events]
    assert kinds.index(("step.completed", "a")) < kinds.index(("plan", "complete"))
    assert kinds[1:4] == [("plan", "streaming"), ("step.started", "a"), ("step.completed", "a")]


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "b", "a"), ("b", "c", "a")])
def test_dependencies_go_first_in_whatever_order_the_plan_names_them(order: tuple[str, ...]) -> None:
    steps = {"a": step("a"), "b": step("b", "a"), "c": step("c", "b", "b", "unknown")}
    show = RunScript(plan=[steps[name] for name in order], is_given=True)
    assert set(endings(played(show)).values()) == {"ok"}
    assert show.started == ["a", "b", "c"]


def test_a_partial_result_is_enough_to_go_on() -> None:
    show = RunScript(plan=[step("a"), step("b", "a")], scripts={"a": StepScript(ends="partial")}, replan="never")
    assert endings(played(show)) == {"a": "partial", "b": "ok"}


def test_a_failed_step_skips_exactly_what_needs_it_once_each_with_the_reason() -> None:
    plan = [step("a"), step("b", "a"), step("c", "a", "b"), step("d")]
    events = played(RunScript(plan=plan, scripts={"a": StepScript(ends="error")}, replan="never"))
    assert endings(events) == {"a": "error", "b": "skipped", "c": "skipped", "d": "ok"}
    assert summaries(events)["b"] == "Not run: needs a, which did not succeed."


def test_a_circle_is_told_of_and_never_hangs() -> None:
    events = played(RunScript(plan=[step("a", "b"), step("b", "a"), step("c")]))
    assert endings(events) == {"a": "skipped", "b": "skipped", "c": "ok"}
    assert summaries(events)["a"] == "Not run: waits in a circle for b."


def test_a_step_that_comes_before_what_it_needs_does_not_hold_up_the_others() -> None:
    show = RunScript(plan=[step("s1", "prep"), step("s2"), step("prep")], concurrency=1)
    played(show)
    assert show.started == ["s2", "prep", "s1"]


def test_a_bug_in_one_step_never_ends_the_others() -> None:
    show = RunScript(plan=[step("a"), step("b"), step("c")], scripts={"b": StepScript(ends="bug")}, replan="never")
    events = played(show)
    assert endings(events) == {"a": "ok", "b": "error", "c": "ok"}
    assert summaries(events)["b"] == "internal error: ZeroDivisionError('a bug')"


def test_a_bug_around_a_step_never_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*asked: object) -> str:
        raise ZeroDivisionError("another bug")

    monkeypatch.setattr("agent.step_runner.dependency_excerpts", broken)
    events = played(RunScript(plan=[step("a"), step("b", "a"), step("c")], replan="never"))
    assert endings(events) == {"a": "ok", "b": "error", "c": "ok"}
    assert [event["message"] for event in events if event["type"] == "warning"] == [
        "internal error around step b: ZeroDivisionError('another bug')"
    ]


def test_a_person_who_thinks_keeps_nobody_else_from_working() -> None:
    parts = {"a": StepScript(takes_s=1, waits_s=100), "b": StepScript(takes_s=1), "c": StepScript(takes_s=1)}
    show = RunScript(plan=[step("a"), step("b"), step("c", "b")], scripts=parts, concurrency=1)
    events = played(show)
    order = [event["step_id"] for event in events if event["type"] == "step.completed"]
    assert order == ["b", "c", "a"]
    assert show.max_running == 1


def test_a_plan_that_grows_slowly_is_not_told_again_for_every_step() -> None:
    events = played(RunScript(plan=[step(f"s{number}") for number in range(200)], plan_gap_s=0.01, concurrency=500))
    told = [event for event in events if event["type"] == "plan"]
    assert len(told) < 40
    sizes = [len(event["steps"]) for event in told]  # type: ignore[arg-type]
    assert sizes == sorted(sizes)
    assert sizes[0] <= 3
    assert (told[-1]["reason"], len(told[-1]["steps"])) == ("complete", 200)  # type: ignore[arg-type]


def test_no_step_waits_long_for_being_announced() -> None:
    async def waits() -> float:
        channel = Channel(session_id="s", run_id="r", log=None)
        book = PlanLog(channel=channel, max_steps=100)
        for number in range(20):
            book.add(step(f"s{number}"))
            await book.wait_announced(f"s{number}")
        began = asyncio.get_running_loop().time()
        book.add(step("late"))
        await book.wait_announced("late")
        return asyncio.get_running_loop().time() - began

    assert 0 < run_in_virtual_time(waits()) < 0.3


def test_a_log_that_breaks_ends_a_run_whose_plan_is_still_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(*told: object, **more: object) -> None:
        raise LogWriteError("the event log cannot be written: disk full")

    monkeypatch.setattr("agent.executor.Executor.run", breaks)
    show = RunScript(plan=[step("a"), step("b")], plan_gap_s=1000.0)

    async def until_it_ends() -> float:
        with pytest.raises(LogWriteError):
            await show.run()
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(until_it_ends()) < 1000


def test_the_hand_wound_clock_finds_a_deadlock() -> None:
    async def waits_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        run_in_virtual_time(waits_for_ever())
