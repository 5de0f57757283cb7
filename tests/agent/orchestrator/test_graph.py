"""Running a graph: when steps start, when the plan is announced, how a failure affects other steps."""

import asyncio

import pytest

from agent.execution.graph.ready_queue import cycle_reason
from agent.execution.graph.run_state import PlanLog
from agent.protocol.channel import Channel, LogWriteError
from agent.vocabulary.plan import PlanStep
from tests.agent.orchestrator.fake_orchestrator import EventJson, RunScript, StepScript
from tests.agent.orchestrator.virtual_time import Deadlock, run_in_virtual_time
from tests.docs.grammar import broken_rules


def step(name: str, *after: str) -> PlanStep:
    return PlanStep(id=name, title=name, instruction=f"do {name}", depends_on=after)


def run(script: RunScript) -> list[EventJson]:
    _, events = run_in_virtual_time(script.run())
    assert broken_rules(events) == []
    return events


def endings(events: list[EventJson]) -> dict[object, object]:
    return {event["step_id"]: event["status"] for event in events if event["type"] == "step.completed"}


def summaries(events: list[EventJson]) -> dict[object, object]:
    return {event["step_id"]: event["summary"] for event in events if event["type"] == "step.completed"}


def test_the_first_step_starts_and_ends_before_the_plan_is_complete() -> None:
    events = run(RunScript(plan=[step("a"), step("b"), step("c", "b")], plan_gap_s=5.0))
    kinds = [(event["type"], event.get("step_id") or event.get("reason")) for event in events]
    assert kinds.index(("step.completed", "a")) < kinds.index(("plan", "complete"))
    assert kinds[1:4] == [("plan", "streaming"), ("step.started", "a"), ("step.completed", "a")]


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "b", "a"), ("b", "c", "a")])
def test_dependencies_run_first_whatever_the_order_of_the_plan(order: tuple[str, ...]) -> None:
    steps = {"a": step("a"), "b": step("b", "a"), "c": step("c", "b", "b", "unknown")}
    script = RunScript(plan=[steps[name] for name in order], is_given=True)
    assert set(endings(run(script)).values()) == {"ok"}
    assert script.started == ["a", "b", "c"]


def test_dependents_of_a_partial_result_run() -> None:
    script = RunScript(plan=[step("a"), step("b", "a")], scripts={"a": StepScript(ends="partial")}, replan="never")
    assert endings(run(script)) == {"a": "partial", "b": "ok"}


def test_a_failed_step_skips_exactly_its_dependents_once_each_with_the_reason() -> None:
    plan = [step("a"), step("b", "a"), step("c", "a", "b"), step("d")]
    events = run(RunScript(plan=plan, scripts={"a": StepScript(ends="error")}, replan="never"))
    assert endings(events) == {"a": "error", "b": "skipped", "c": "skipped", "d": "ok"}
    assert summaries(events)["b"] == "Not run: needs a, which did not succeed."


def test_a_cycle_is_reported_and_does_not_hang() -> None:
    events = run(RunScript(plan=[step("a", "b"), step("b", "a"), step("c")]))
    assert endings(events) == {"a": "skipped", "b": "skipped", "c": "ok"}
    assert summaries(events)["a"] == f"Not run: {cycle_reason('b')}."


def test_a_step_listed_before_its_dependency_does_not_block_others() -> None:
    script = RunScript(plan=[step("s1", "prep"), step("s2"), step("prep")], concurrency=1)
    run(script)
    assert script.started == ["s2", "prep", "s1"]


def test_an_internal_error_in_one_step_does_not_affect_the_others() -> None:
    script = RunScript(plan=[step("a"), step("b"), step("c")], scripts={"b": StepScript(ends="bug")}, replan="never")
    events = run(script)
    assert endings(events) == {"a": "ok", "b": "error", "c": "ok"}
    assert summaries(events)["b"] == "internal error: ZeroDivisionError('a bug')"


def test_an_internal_error_around_a_step_does_not_affect_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> str:
        raise ZeroDivisionError("another bug")

    monkeypatch.setattr("agent.step_runner.dependency_excerpts", broken)
    events = run(RunScript(plan=[step("a"), step("b", "a"), step("c")], replan="never"))
    assert endings(events) == {"a": "ok", "b": "error", "c": "ok"}
    assert [event["message"] for event in events if event["type"] == "warning"] == [
        "internal error around step b: ZeroDivisionError('another bug')"
    ]


def test_a_step_that_waits_for_the_user_does_not_block_the_others() -> None:
    scripts = {"a": StepScript(takes_s=1, waits_s=100), "b": StepScript(takes_s=1), "c": StepScript(takes_s=1)}
    script = RunScript(plan=[step("a"), step("b"), step("c", "b")], scripts=scripts, concurrency=1)
    events = run(script)
    order = [event["step_id"] for event in events if event["type"] == "step.completed"]
    assert order == ["b", "c", "a"]
    assert script.max_running == 1


def test_a_slowly_streaming_plan_is_not_announced_for_every_step() -> None:
    events = run(RunScript(plan=[step(f"s{number}") for number in range(200)], plan_gap_s=0.01, concurrency=500))
    announced = [event for event in events if event["type"] == "plan"]
    assert len(announced) < 40
    sizes = [len(event["steps"]) for event in announced]  # type: ignore[arg-type]
    assert sizes == sorted(sizes)
    assert sizes[0] <= 3
    assert (announced[-1]["reason"], len(announced[-1]["steps"])) == ("complete", 200)  # type: ignore[arg-type]


def test_a_step_is_announced_within_the_maximum_delay() -> None:
    async def waits() -> float:
        channel = Channel(session_id="s", run_id="r", log=None)
        plan_log = PlanLog(channel=channel, max_steps=100)
        for number in range(20):
            plan_log.add(step(f"s{number}"))
            await plan_log.wait_announced(f"s{number}")
        started = asyncio.get_running_loop().time()
        plan_log.add(step("late"))
        await plan_log.wait_announced("late")
        return asyncio.get_running_loop().time() - started

    assert 0 < run_in_virtual_time(waits()) < 0.3


def test_a_log_write_error_ends_a_run_whose_plan_is_still_streaming(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*args: object, **kwargs: object) -> None:
        raise LogWriteError("disk full")

    monkeypatch.setattr("agent.executor.Executor.run", fail)
    script = RunScript(plan=[step("a"), step("b")], plan_gap_s=1000.0)

    async def until_it_ends() -> float:
        with pytest.raises(LogWriteError):
            await script.run()
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(until_it_ends()) < 1000


def test_the_virtual_clock_detects_a_deadlock() -> None:
    async def waits_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        run_in_virtual_time(waits_for_ever())
