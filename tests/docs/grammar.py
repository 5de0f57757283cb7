"""The grammar of an event stream: `broken_rules` checks the events of one run."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from tests.docs.event_schema import is_in_step

Line: TypeAlias = Mapping[str, object]

# What a step was waiting for when it was stopped has no end of its own.
STOPPED = ("cancelled", "timeout")
SUCCEEDED = ("ok", "partial")
# Begin, end, and the field that joins them.
PAIRS = (
    ("tool.started", "tool.completed", "tool_id"),
    ("approval.requested", "approval.resolved", "approval_id"),
    ("question.asked", "question.answered", "question_id"),
)


def broken_rules(events: Sequence[Line]) -> list[str]:
    """Return the violations in the events of a run; empty for a valid stream."""
    if not events:
        return ["there is no event at all"]
    return [
        *_frame(events),
        *_order(events),
        *_step_fields(events),
        *_plans(events),
        *_steps(events),
        *_pairs(events),
        *_result(events),
    ]


def _frame(events: Sequence[Line]) -> Iterator[str]:
    kinds = [event["type"] for event in events]
    for name, index in (("init", 0), ("result", -1)):
        if kinds[index] != name:
            yield f"{name} is not at its end of the stream, but {kinds[index]}"
        if kinds.count(name) != 1:
            yield f"there are {kinds.count(name)} {name} events"


def _order(events: Sequence[Line]) -> Iterator[str]:
    numbers = [int(str(event["seq"])) for event in events]
    for before, after in itertools.pairwise(numbers):
        # Gaps are allowed: a slow reader loses fragments of text.
        if after <= before:
            yield f"seq {after} follows {before}"
    for name in ("session_id", "run_id"):
        if len({event[name] for event in events}) != 1:
            yield f"{name} changes within a run"


def _step_fields(events: Sequence[Line]) -> Iterator[str]:
    for event in events:
        if is_in_step(str(event["type"])) and not (event.get("step_id") and event.get("attempt")):
            yield f"{event['type']} at seq {event['seq']} has no step_id and attempt"


def _plans(events: Sequence[Line]) -> Iterator[str]:
    plans = [event for event in events if event["type"] == "plan"]
    if [plan["revision"] for plan in plans] != list(range(1, len(plans) + 1)):
        yield f"plan revisions are {[plan['revision'] for plan in plans]}"
    if len({plan["plan_id"] for plan in plans}) > 1:
        yield "plan_id changes between revisions"
    planned: dict[str, list[str]] = {}
    ended: dict[object, object] = {}
    for event in events:
        if event["type"] == "plan":
            planned = {step["id"]: step["depends_on"] for step in event["steps"]}  # type: ignore[attr-defined]
        elif event["type"] in ("step.started", "step.completed"):
            step_id = str(event.get("step_id"))
            if step_id not in planned:
                yield f"{event['type']} of {step_id} comes before a plan that holds it"
            if event["type"] == "step.completed":
                ended[step_id] = event["status"]
            else:
                yield from _too_early(step_id, planned, ended)


def _too_early(step_id: str, planned: Mapping[str, list[str]], ended: Mapping[object, object]) -> Iterator[str]:
    for needed in planned.get(step_id, []):
        if needed in planned and ended.get(needed) not in SUCCEEDED:
            yield f"{step_id} started before {needed} had succeeded"


def _steps(events: Sequence[Line]) -> Iterator[str]:
    running: set[object] = set()
    ended: set[object] = set()
    for event in events:
        step_id, kind = event.get("step_id"), event["type"]
        if step_id is None:
            continue
        if step_id in ended:
            yield f"{kind} of {step_id} comes after its step.completed"
        elif kind == "step.started":
            if step_id in running:
                yield f"{step_id} started twice"
            running.add(step_id)
        elif kind == "step.completed":
            if step_id not in running and event["status"] != "skipped":
                yield f"{step_id} ended as {event['status']} without having started"
            running.discard(step_id)
            ended.add(step_id)
        elif step_id not in running:
            yield f"{kind} of {step_id} comes before its step.started"
    for step_id in running:
        yield f"{step_id} started and never ended"


def _pairs(events: Sequence[Line]) -> Iterator[str]:
    endings = {event.get("step_id"): event["status"] for event in events if event["type"] == "step.completed"}
    for begin, end, name in PAIRS:
        # A provider may use the same id again in a later turn, so pairs are counted.
        open_pairs: Counter[tuple[object, object]] = Counter()
        for event in events:
            key = (event.get("step_id"), event.get(name))
            if event["type"] == begin:
                open_pairs[key] += 1
            elif event["type"] == end:
                if open_pairs[key]:
                    open_pairs[key] -= 1
                elif event.get("status") != "cancelled":
                    # Only a call that was never run ends without having begun.
                    yield f"{end} {key[1]} has no {begin}"
        for (step_id, key_id), count in open_pairs.items():
            if count > 0 and (begin == "tool.started" or endings.get(step_id) not in STOPPED):
                yield f"{begin} {key_id} of {step_id} has no {end}"


def _result(events: Sequence[Line]) -> Iterator[str]:
    result = events[-1]
    if result["type"] != "result":
        return
    if bool(result["exit_code"]) != result["is_error"]:
        yield f"is_error is {result['is_error']} with exit code {result['exit_code']}"
    if (result["subtype"] == "success") == result["is_error"]:
        yield f"subtype is {result['subtype']} with exit code {result['exit_code']}"
    plans = {event["plan_id"] for event in events if event["type"] == "plan"}
    if plans and result["plan_id"] not in plans:
        yield f"the result names the plan {result['plan_id']}, which was never announced"
    statuses = Counter(str(event["status"]) for event in events if event["type"] == "step.completed")
    counts = {"ok": sum(statuses[name] for name in SUCCEEDED), "skipped": statuses["skipped"]}
    counted = {name: result["steps"][name] for name in counts}  # type: ignore[index]
    if counted != counts:
        yield f"the result counts {counted}, the stream shows {counts}"
