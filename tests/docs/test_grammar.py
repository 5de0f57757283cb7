"""The grammar check accepts a complete stream and detects every kind of violation."""

from collections.abc import Callable

import pytest

from tests.docs.grammar import broken_rules

Event = dict[str, object]


def stream() -> list[Event]:
    """A run with two dependent steps and an approved call."""
    steps = [{"id": "a", "depends_on": []}, {"id": "b", "depends_on": ["a"]}]
    in_a = {"step_id": "a", "attempt": 1}
    in_b = {"step_id": "b", "attempt": 1}
    counts = {"ok": 2, "failed": 0, "skipped": 0}
    events: list[Event] = [
        {"type": "init"},
        {"type": "plan", "plan_id": "p", "revision": 1, "steps": steps[:1]},
        {"type": "step.started", **in_a},
        {"type": "plan", "plan_id": "p", "revision": 2, "steps": steps},
        {"type": "tool.started", "tool_id": "t", **in_a},
        {"type": "approval.requested", "approval_id": "x", **in_a},
        {"type": "approval.resolved", "approval_id": "x", **in_a},
        {"type": "tool.completed", "tool_id": "t", **in_a},
        {"type": "step.completed", "status": "partial", **in_a},
        {"type": "step.started", **in_b},
        {"type": "step.completed", "status": "ok", **in_b},
        {"type": "result", "subtype": "success", "is_error": False, "exit_code": 0, "plan_id": "p", "steps": counts},
    ]
    return [{"seq": seq, "session_id": "s", "run_id": "r", **event} for seq, event in enumerate(events, 1)]


def drop_event(index: int) -> Callable[[list[Event]], object]:
    return lambda events: events.pop(index)


def swap_events(one: int, other: int) -> Callable[[list[Event]], object]:
    def swap(events: list[Event]) -> None:
        events[one], events[other] = events[other], events[one]
        for seq, event in enumerate(events, 1):
            event["seq"] = seq

    return swap


def update_event(index: int, **values: object) -> Callable[[list[Event]], object]:
    return lambda events: events[index].update(values)


def test_a_complete_stream_is_valid() -> None:
    assert broken_rules(stream()) == []


def test_gaps_in_seq_are_allowed() -> None:
    events = stream()
    for event in events[5:]:
        event["seq"] = int(str(event["seq"])) + 3
    assert broken_rules(events) == []


def test_a_stopped_step_completes_its_calls_but_not_its_approvals() -> None:
    events = stream()[:6]
    counts = {"ok": 0, "failed": 0, "skipped": 0}
    in_a = {"status": "cancelled", "step_id": "a", "attempt": 1}
    rest: list[Event] = [
        {"type": "tool.completed", "tool_id": "t", **in_a},
        {"type": "tool.completed", "tool_id": "never begun", **in_a},
        {"type": "step.completed", **in_a},
        {"type": "result", "subtype": "error_interrupted", "is_error": True, "exit_code": 130, "plan_id": "p"},
    ]
    rest[-1]["steps"] = counts
    events += [{"seq": seq, "session_id": "s", "run_id": "r", **event} for seq, event in enumerate(rest, 7)]
    assert broken_rules(events) == []
    del events[6]
    assert broken_rules(events) == ["tool.started t of a has no tool.completed"]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (list.clear, "no event at all"),
        (drop_event(0), "init is not at its end"),
        (drop_event(-1), "result is not at its end"),
        (lambda events: events.insert(3, {**events[0], "seq": 4}), "2 init events"),
        (update_event(4, seq=2), "seq 2 follows 4"),
        (update_event(4, run_id="other"), "run_id changes"),
        (lambda events: events[4].pop("attempt"), "no step_id and attempt"),
        (drop_event(1), "before a plan that holds it"),
        (update_event(3, revision=3), "plan revisions are [1, 3]"),
        (update_event(3, plan_id="q"), "plan_id changes"),
        (swap_events(8, 9), "b started before a had succeeded"),
        (update_event(8, status="error"), "b started before a had succeeded"),
        (drop_event(2), "comes before its step.started"),
        (drop_event(8), "a started and never ended"),
        (update_event(9, step_id="a"), "comes after its step.completed"),
        (update_event(9, type="step.completed", status="ok"), "without having started"),
        (drop_event(7), "tool.started t of a has no tool.completed"),
        (drop_event(4), "tool.completed t has no tool.started"),
        (drop_event(6), "approval.requested x of a has no approval.resolved"),
        (update_event(6, approval_id="y"), "approval.resolved y has no approval.requested"),
        (update_event(-1, exit_code=1), "is_error is False with exit code 1"),
        (update_event(-1, subtype="partial"), "subtype is partial with exit code 0"),
        (update_event(-1, plan_id="q"), "never announced"),
        (update_event(-1, steps={"ok": 1, "failed": 0, "skipped": 0}), "the result counts"),
    ],
)
def test_every_violation_is_reported(damage: Callable[[list[Event]], object], expected: str) -> None:
    events = stream()
    damage(events)
    assert any(expected in rule for rule in broken_rules(events)), broken_rules(events)
