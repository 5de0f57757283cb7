"""How far the work is, in a form and size a planner can go on from."""

import json
from collections.abc import Iterable, Sequence

from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorResponse

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
    state = {"ended": ended, "running": working, "not started": _fitting(waiting)}
    return json.dumps(state, ensure_ascii=False, indent=1)


def _fitting(steps: Iterable[PlanStep]) -> list[dict[str, object]]:
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
