"""Revising a plan: pure functions that merge replanned steps into it and diff the two."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorResponse
from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRevision:
    """The complete new plan, its steps that have not started, and the diff to the old plan.

    `has_new_work` is whether it contains work that the old plan did not.
    """

    steps: tuple[PlanStep, ...]
    unstarted: tuple[PlanStep, ...]
    diff: str
    has_new_work: bool


def revise_plan(
    plan: Sequence[PlanStep],
    replanned: Sequence[PlanStep],
    *,
    waiting: Collection[str],
    used: Mapping[str, PlanStep],
    replaced: Collection[str],
) -> PlanRevision:
    """Return the plan with the `waiting` steps replaced by the replanned ones.

    `used` maps ids to all steps that ever started: a replanned step with the same id and the same work is that step,
    other work gets a new id. `replaced` are failed steps; a replanned step always gets a new id instead of theirs.
    """
    kept = [step for step in plan if step.id not in waiting and step.id not in replaced]
    renamed: dict[str, str] = {}
    fresh: list[PlanStep] = []
    taken = {*used, *(step.id for step in replanned)}
    for step in replanned:
        previous = used.get(step.id)
        if previous is None:
            fresh.append(step)
        elif step.id in replaced or not _is_same_work(previous, step):
            renamed[step.id] = _free_id(step.id, taken)
            taken.add(renamed[step.id])
            fresh.append(replace(step, id=renamed[step.id]))
    # A planner whose step depends on the step it replaces means that step's result, which is known.
    removed = {step_id for step_id in replaced if step_id not in renamed}
    unstarted = tuple(
        replace(step, depends_on=tuple(dict.fromkeys(renamed.get(d, d) for d in step.depends_on if d not in removed)))
        for step in fresh
    )
    old = {step.id: step for step in plan}
    return PlanRevision(
        steps=(*kept, *unstarted),
        unstarted=unstarted,
        diff=plan_diff(plan, (*kept, *unstarted)),
        has_new_work=any(step.id not in old or not _is_same_work(old[step.id], step) for step in unstarted),
    )


def plan_diff(previous: Sequence[PlanStep], after: Sequence[PlanStep]) -> str:
    """Return the removed (-), added (+) and changed (~) steps, one per line."""
    old, new = {step.id: step for step in previous}, {step.id: step for step in after}
    lines = [f"- {step.id} {step.title}" for step in previous if step.id not in new]
    for step in after:
        if step.id not in old:
            lines.append(f"+ {step.id} {step.title}")
        elif replace(step, est_usd=None) != replace(old[step.id], est_usd=None):
            lines.append(f"~ {step.id} {step.title}")
    return "\n".join(lines)


def _is_same_work(one: PlanStep, other: PlanStep) -> bool:
    def work(step: PlanStep) -> tuple[object, ...]:
        return step.type, step.instruction, step.tool, dict(step.args), step.ask_question

    return work(one) == work(other)


def _free_id(wanted: str, taken: Collection[str]) -> str:
    number = 2
    while f"{wanted}-{number}" in taken:
        number += 1
    return f"{wanted}-{number}"


LAST_RESULTS = 25
_RESULT_CHARS = 300
_INSTRUCTION_CHARS = 300
_WAITING_CHARS = 6000


def progress_text(
    results: Sequence[tuple[PlanStep, ExecutorResponse]], running: Iterable[PlanStep], waiting: Iterable[PlanStep]
) -> str:
    """Return the latest results, the running steps and those not started, as JSON."""
    ended = [
        {"id": step.id, "title": step.title, "status": response.status, "result": response.summary[:_RESULT_CHARS]}
        for step, response in results[-LAST_RESULTS:]
    ]
    working = [{"id": step.id, "title": step.title} for step in running][:LAST_RESULTS]
    state = {"ended": ended, "running": working, "not started": _steps_within_limit(waiting)}
    return json.dumps(state, ensure_ascii=False, indent=1)


def _steps_within_limit(steps: Iterable[PlanStep]) -> list[dict[str, object]]:
    """Return as many of the steps as fit, in order."""
    shown: list[dict[str, object]] = []
    remaining = _WAITING_CHARS
    for step in steps:
        instruction = step.instruction[:_INSTRUCTION_CHARS]
        remaining -= len(instruction) + len(step.title) + 60
        if remaining < 0:
            break
        shown.append(
            {"id": step.id, "title": step.title, "instruction": instruction, "depends_on": list(step.depends_on)}
        )
    return shown
