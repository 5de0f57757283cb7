"""What a plan becomes when its rest is planned again: pure, and shown as a diff."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorResponse
from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRevision:
    """The whole new plan, the steps of it that are still to start, and how it differs from the old one.

    It `brings_work` when there is something to do in it that the old plan did not have.
    """

    steps: tuple[PlanStep, ...]
    unstarted: tuple[PlanStep, ...]
    diff: str
    has_new_work: bool


def revise_plan(
    plan: Sequence[PlanStep],
    planned_again: Sequence[PlanStep],
    *,
    waiting: Collection[str],
    used: Mapping[str, PlanStep],
    leaving: Collection[str],
) -> PlanRevision:
    """Return the plan with other steps in the place of those that are `waiting`.

    `used` are all steps that ever started, by id: the same work under the same id is left to the step that has it,
    other work gets an id of its own. `leaving` are steps that failed and are replaced: nothing may pass for them.
    """
    stays = [step for step in plan if step.id not in waiting and step.id not in leaving]
    names: dict[str, str] = {}
    fresh: list[PlanStep] = []
    taken = {*used, *(step.id for step in planned_again)}
    for step in planned_again:
        before = used.get(step.id)
        if before is None:
            fresh.append(step)
        elif step.id in leaving or not _is_same_work(before, step):
            names[step.id] = _free_id(step.id, taken)
            taken.add(names[step.id])
            fresh.append(replace(step, id=names[step.id]))
    # A planner that waits for the step it replaces means what came of it, which is known.
    gone = {step_id for step_id in leaving if step_id not in names}
    rest = tuple(
        replace(step, depends_on=tuple(dict.fromkeys(names.get(d, d) for d in step.depends_on if d not in gone)))
        for step in fresh
    )
    old = {step.id: step for step in plan}
    return PlanRevision(
        steps=(*stays, *rest),
        unstarted=rest,
        diff=plan_diff(plan, (*stays, *rest)),
        has_new_work=any(step.id not in old or not _is_same_work(old[step.id], step) for step in rest),
    )


def plan_diff(before: Sequence[PlanStep], after: Sequence[PlanStep]) -> str:
    """Return the steps that left (-), came (+) or changed (~), a line each."""
    old, new = {step.id: step for step in before}, {step.id: step for step in after}
    lines = [f"- {step.id} {step.title}" for step in before if step.id not in new]
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
    """Return the newest results, what is being worked on and what has not started, as JSON."""
    ended = [
        {"id": step.id, "title": step.title, "status": response.status, "result": response.summary[:_RESULT_CHARS]}
        for step, response in results[-LAST_RESULTS:]
    ]
    working = [{"id": step.id, "title": step.title} for step in running][:LAST_RESULTS]
    state = {"ended": ended, "running": working, "not started": _steps_within_limit(waiting)}
    return json.dumps(state, ensure_ascii=False, indent=1)


def _steps_within_limit(steps: Iterable[PlanStep]) -> list[dict[str, object]]:
    """Return the steps that find room, the next ones first."""
    shown: list[dict[str, object]] = []
    room = _WAITING_CHARS
    for step in steps:
        words = step.instruction[:_INSTRUCTION_CHARS]
        room -= len(words) + len(step.title) + 60
        if room < 0:
            break
        shown.append({"id": step.id, "title": step.title, "instruction": words, "depends_on": list(step.depends_on)})
    return shown
