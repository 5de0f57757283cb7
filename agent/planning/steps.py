"""From what a planner wrote to steps that can be run: defaults filled in, ids made unique, order found."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush

from agent.vocabulary.plan import PlanStep, StepType

_TITLE_CHARS = 60
_TYPES: dict[str, StepType] = {"task": "task", "ask_user": "ask_user"}
DEFAULT_OPTIONS = ("Yes", "No")


class StepMaker:
    """Makes steps out of raw objects, one at a time, as they stream in."""

    def __init__(self, request: str) -> None:
        self._request = request
        self._ids: set[str] = set()

    def make(self, raw: Mapping[str, object]) -> PlanStep:
        """Return the step, whatever is missing or misshapen in the raw object."""
        number = len(self._ids) + 1
        step_id = self._unique(_text(raw.get("id")) or f"step{number}")
        instruction = _text(raw.get("instruction")) or _text(raw.get("description")) or self._request
        step_type = _TYPES.get(_text(raw.get("type") or raw.get("step_type")), "task")
        options = _texts(raw.get("ask_options") or raw.get("options"))
        return PlanStep(
            id=step_id,
            title=(_text(raw.get("title")) or _first_words(instruction) or f"Step {number}"),
            instruction=instruction,
            type=step_type,
            depends_on=tuple(dict.fromkeys(dep for dep in _texts(raw.get("depends_on")) if dep != step_id)),
            reads=_texts(raw.get("reads")),
            writes=_texts(raw.get("writes")),
            allowed_tools=_texts(raw.get("allowed_tools")) or None,
            profile=_text(raw.get("profile")) or "default",
            expect=_text(raw.get("expect")),
            ask_question=(_text(raw.get("ask_question")) or instruction) if step_type == "ask_user" else None,
            ask_options=(options if len(options) > 1 else DEFAULT_OPTIONS) if step_type == "ask_user" else (),
        )

    def _unique(self, wanted: str) -> str:
        step_id, suffix = wanted, 2
        while step_id in self._ids:
            step_id, suffix = f"{wanted}-{suffix}", suffix + 1
        self._ids.add(step_id)
        return step_id


def only_step(request: str) -> PlanStep:
    """Return the one step of a request that could not be planned."""
    return PlanStep(id="step1", title=_first_words(request) or "Do the task", instruction=request)


def in_order(steps: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
    """Return the steps with dependencies first, stable otherwise; steps of a cycle come last, none is lost."""
    place = {step.id: index for index, step in enumerate(steps)}
    missing = [{place[dep] for dep in step.depends_on if dep in place} for step in steps]
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


def _text(value: object) -> str:
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        return ""
    # Half a surrogate pair can be neither sent nor stored.
    return str(value).encode("utf-8", "replace").decode().strip()


def _texts(value: object) -> tuple[str, ...]:
    # A planner that needs one thing only may leave out the brackets.
    items: Iterable[object] = value if isinstance(value, list) else (value,)
    return tuple(text for item in items if (text := _text(item)))


def _first_words(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"
