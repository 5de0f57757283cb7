"""A lead with a changed plan that is cut off anywhere: on resume it gets every result once, and nothing is repeated."""

import random
from collections import Counter

import pytest

from agent.model.port import ModelRequest
from tests.agent.orchestrator.lead_runs import AUTO, lead_requests
from tests.agent.orchestrator.run_harness import RunHarness
from tests.cli.terminal_user import hand_out, lead_reply, step, step_call, step_reply

CUTS = 12


def worker(name: str, delay: float = 0.0) -> list[dict[str, object]]:
    """Script a step that appends its name to a file once, and looks first if it is not sure."""
    append = f"sleep {delay}; grep -qsx {name} out.txt || echo {name} >> out.txt"
    again = {"match": {"purpose": "step", "step": name, "contains": "the run was stopped"}}
    done = {"match": {"purpose": "step", "step": name, "contains": "empty output"}, "text": f"{name} is there"}
    call = {"name": "run_command", "arguments": {"command": append}}
    return [
        {**again, "tool_calls": [call], "repeat": True},
        {**done, "repeat": True},
        {**step_call(name, "run_command", command=append), "repeat": True},
    ]


def lead(contains: str, **reply: object) -> dict[str, object]:
    # In one piece, so that no kill comes before a plan is complete.
    return {"match": {"purpose": "lead", "contains": contains}, "repeat": True, "chunks": 1, **reply}


def cut(harness: RunHarness, lines: list[bytes]) -> None:
    """Leave what a kill after these lines would have left."""
    harness.log.write_bytes(b"".join(lines))
    for result in (harness.log.parent / "steps").iterdir():
        if result.stem.encode() not in harness.log.read_bytes():
            result.unlink()


CHANGED_PLAN = (
    # Each reply of the lead follows from what it read last, so that it is the same after a kill.
    lead("x is there", text="All is there."),
    lead("y is there", text="All is there."),
    lead("b failed", tool_calls=hand_out(step("x", "a"), step("y", context="fork"))["tool_calls"]),
    lead("do it", tool_calls=hand_out(step("a"), step("b", "a"), step("c", "b"), step("slow"))["tool_calls"]),
    *worker("a"),
    {"match": {"purpose": "step", "step": "b"}, "fault": "refused", "repeat": True},
    *worker("slow", 0.8),
    *worker("x"),
    *worker("y", 0.4),
    lead("slow is there", text="All is there."),
    lead("", text="All is there."),
)


def test_a_changed_plan_cut_off_anywhere_is_resumed(harness: RunHarness, requests: list[ModelRequest]) -> None:
    harness.session = "s"
    first = harness.run(*CHANGED_PLAN, **AUTO)
    assert (first.outcome.exit_code, first.outcome.answer) == (0, "All is there.")
    assert first.statuses == {"a": "ok", "b": "error", "slow": "ok", "x": "ok", "y": "ok", "lead": "ok"}
    lines = harness.log.read_bytes().splitlines(keepends=True)
    begin = next(index for index, line in enumerate(lines) if b'"step.started"' in line)
    harness.resumes = str(first.events[0]["run_id"])
    for count in sorted(random.sample(range(begin + 1, len(lines)), CUTS)):
        cut(harness, lines[:count])
        requests.clear()
        run = harness.run(*CHANGED_PLAN, **AUTO)
        place = f"after {count} lines: {lines[count - 1][:300]!r}"
        assert (run.outcome.exit_code, run.outcome.answer) == (0, "All is there."), f"{place} {run.outcome.error}"
        assert {"a", "slow", "x", "y"} <= {name for name, status in run.statuses.items() if status == "ok"}, place
        done = {name for name in ("a", "slow", "x", "y") if _has_ended(lines[:count], name)}
        repeated = {request.step_id for request in requests if request.step_id in done}
        assert not repeated, f"{place}: {repeated} had succeeded"
        if seen := lead_requests(requests):
            read = "\n".join(message.content for message in seen[-1].messages)
            assert all(f'<result step="{name}"' in read for name in ("a", "slow", "x", "y")), place
    assert Counter((harness.home / "out.txt").read_text().split()) == Counter(["a", "slow", "x", "y"])


def _has_ended(lines: list[bytes], name: str) -> bool:
    return any(b'"step.completed"' in line and f'"step_id": "{name}"'.encode() in line for line in lines)


@pytest.mark.parametrize("waits", ["answer", "wait"])
def test_steps_that_the_lead_was_waiting_for_are_awaited_again(harness: RunHarness, waits: str) -> None:
    harness.session = "s"
    said = lead_reply("I think so.") if waits == "answer" else hand_out()
    script = (
        hand_out(step("a"), step("b")),
        {"match": {"step": "a"}, "fault": "refused"},
        {**step_reply("b", "B at last"), "delay_ms": 500},
        said,
        lead_reply("Only b.", repeat=True),
    )
    first = harness.run(*script, **AUTO)
    assert first.outcome.exit_code == 1
    lines = harness.log.read_bytes().splitlines(keepends=True)
    cut = next(i for i, line in enumerate(lines) if b'"step.completed"' in line and b'"step_id": "b"' in line and i > 0)
    harness.log.write_bytes(b"".join(lines[:cut]))
    harness.resumes = str(first.events[0]["run_id"])
    run = harness.run(lead_reply("Only b.", repeat=True), **AUTO)
    assert run.statuses == {"a": "error", "b": "ok", "lead": "ok"}
    assert (run.outcome.exit_code, run.outcome.answer) == (1, "Only b."), "a still failed"
    assert "B at last" in str([event.get("output") or event.get("content") for event in run.events])
