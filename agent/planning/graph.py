"""Graph algorithms over plan steps: topological order, levels, critical path, cycles."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from agent.vocabulary.plan import PlanStep, StepType

# A task takes several model turns and tool calls; the user's time to answer is not counted.
_WEIGHTS: dict[StepType, int] = {"task": 5, "tool": 1, "ask_user": 0}


def topological_order(steps: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
    """Return the steps with dependencies first, otherwise in their given order; steps of a cycle come last."""
    index_of = {step.id: index for index, step in enumerate(steps)}
    missing = [{index_of[dep] for dep in step.depends_on if dep in index_of} for step in steps]
    dependents: defaultdict[int, list[int]] = defaultdict(list)
    for index, needed in enumerate(missing):
        for dep in needed:
            dependents[dep].append(index)
    ready = [index for index, needed in enumerate(missing) if not needed]
    ordered: list[int] = []
    while ready:
        index = heappop(ready)
        ordered.append(index)
        for dependent in dependents[index]:
            missing[dependent].discard(index)
            if not missing[dependent]:
                heappush(ready, dependent)
    in_cycle = [index for index, needed in enumerate(missing) if needed]
    return tuple(steps[index] for index in (*ordered, *in_cycle))


def levels(steps: Sequence[PlanStep]) -> Mapping[str, int]:
    """Return the depth of each step in the graph; steps of one level may run concurrently."""
    found: dict[str, int] = {}
    for step in topological_order(steps):
        found[step.id] = max((found[dep] + 1 for dep in step.depends_on if dep in found), default=0)
    return found


def critical_path(steps: Sequence[PlanStep]) -> tuple[str, ...]:
    """Return the chain of steps with the longest estimated duration."""
    length: dict[str, tuple[int, int]] = {}
    before: dict[str, str | None] = {}
    for step in topological_order(steps):
        known = [dep for dep in step.depends_on if dep in length]
        longest = max(known, key=lambda dep: length[dep], default=None)
        weight, count = length[longest] if longest else (0, 0)
        length[step.id], before[step.id] = (weight + _WEIGHTS[step.type], count + 1), longest
    path: list[str] = []
    last = max(length, key=lambda step_id: length[step_id], default=None)
    while last is not None:
        path.append(last)
        last = before[last]
    return tuple(reversed(path))


def find_cycle(steps: Sequence[PlanStep]) -> tuple[str, ...]:
    """Return the ids of one cycle, the first repeated at the end; empty if there is none."""
    needs = {step.id: list(step.depends_on) for step in steps}
    free: set[str] = set()
    for step in topological_order(steps):
        if all(dep in free or dep not in needs for dep in step.depends_on):
            free.add(step.id)
    trail: list[str] = []
    step_id = next((step.id for step in steps if step.id not in free), None)
    while step_id is not None and step_id not in trail:
        trail.append(step_id)
        step_id = next(dep for dep in needs[step_id] if dep in needs and dep not in free)
    return (*trail[trail.index(step_id) :], step_id) if step_id is not None else ()


def outline(steps: Sequence[PlanStep]) -> str:
    """Return a plan as plain text, one step per line."""
    return "\n".join(
        f"{step.id}  {step.title}" + (f"  (after {', '.join(step.depends_on)})" if step.depends_on else "")
        for step in steps
    )
