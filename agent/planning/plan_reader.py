"""Incremental parser for a planner's reply: returns steps as they arrive, ignoring prose and fences around them."""

import json
from collections.abc import Mapping

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern

_STEPS = lazy_pattern(r'"(?:steps|plan)"\s*:\s*\[')
_DECODER = json.JSONDecoder(strict=False)
# Endlessly nested brackets raise RecursionError.
_UNREADABLE = (ValueError, RecursionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPlan:
    """The complete reply: an answer, step objects, or neither; `is_empty` if it is an explicitly empty plan."""

    answer: str | None = None
    steps: tuple[Mapping[str, object], ...] = ()
    is_empty: bool = False


class PlanReader:
    """Feed fragments to get each step object as soon as it is complete; `finish` parses the complete reply."""

    def __init__(self) -> None:
        self._text = ""
        self._next: int | None = None
        self._steps: list[Mapping[str, object]] = []

    def feed(self, fragment: str) -> list[Mapping[str, object]]:
        """Return the step objects that this fragment completes."""
        self._text += fragment
        if self._next is None:
            if not (match := _STEPS.search(self._text)):
                return []
            self._next = match.end()
        fresh: list[Mapping[str, object]] = []
        # Only a closing brace can complete an object: other fragments need no decoding attempt.
        if "}" in fragment:
            while (step := self._next_step()) is not None:
                fresh.append(step)
        self._steps += fresh
        return fresh

    def restart(self) -> None:
        """Discard a reply that broke off and is requested again."""
        self._text, self._next, self._steps = "", None, []

    def finish(self, text: str) -> RawPlan:
        """Parse the complete reply, repairing what streaming could not read."""
        for candidate in _objects(text):
            if isinstance(answer := candidate.get("answer"), str) and answer.strip() and not candidate.get("steps"):
                return RawPlan(answer=answer.strip())
            steps = candidate.get("steps", candidate.get("plan"))
            if isinstance(steps, Mapping):
                steps = steps.get("steps")
            if isinstance(steps, list):
                objects = tuple(step for step in steps if isinstance(step, Mapping))
                if objects or not steps:
                    return RawPlan(steps=objects, is_empty=not steps)
        return RawPlan(steps=tuple(self._steps) or _bare_list(text))

    def _next_step(self) -> Mapping[str, object] | None:
        """Return the next complete step object, skipping other values."""
        while True:
            assert self._next is not None
            start = self._next
            while start < len(self._text) and self._text[start] in " \t\r\n,":
                start += 1
            try:
                value, self._next = _DECODER.raw_decode(self._text, start)
            except _UNREADABLE:
                return None
            if isinstance(value, Mapping):
                return value


def _objects(text: str) -> list[Mapping[str, object]]:
    """Return the JSON objects of a reply; if none is valid, repair the outermost braces."""
    objects: list[Mapping[str, object]] = []
    start = text.find("{")
    while start != -1:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except _UNREADABLE:
            break
        objects.append(value)
        start = text.find("{", end)
    if not objects and (first := text.find("{")) != -1:
        from agent.model.reply.call_arguments import parse_arguments

        value, problem = parse_arguments(text[first : text.rfind("}") + 1])
        if problem is None:
            objects.append(value)
    return objects


def _bare_list(text: str) -> tuple[Mapping[str, object], ...]:
    """Return the objects of a reply that is a bare list of steps."""
    start = text.find("[")
    try:
        value, _ = _DECODER.raw_decode(text, start) if start != -1 else (None, 0)
    except _UNREADABLE:
        return ()
    if not isinstance(value, list):
        return ()
    return tuple(step for step in value if isinstance(step, Mapping) and ("instruction" in step or "title" in step))
