"""Reads a planner's reply while it streams: steps come out one by one, prose and fences around them do no harm."""

import json
import re
from collections.abc import Mapping

from agent.model.reply.call_arguments import parse_arguments
from tooling.contract.fast_dataclass import dataclass

_STEPS = re.compile(r'"(?:steps|plan)"\s*:\s*\[')
_DECODER = json.JSONDecoder(strict=False)
# Brackets without end are no plan either.
_UNREADABLE = (ValueError, RecursionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPlan:
    """What the whole reply said: an answer, step objects, or neither; `is_empty` when it said that there are none."""

    answer: str | None = None
    steps: tuple[Mapping[str, object], ...] = ()
    is_empty: bool = False


class PlanReader:
    """Feed fragments, get step objects as soon as each is complete; `finish` reads the whole."""

    def __init__(self) -> None:
        self._text = ""
        self._next: int | None = None
        self._steps: list[Mapping[str, object]] = []

    def feed(self, fragment: str) -> list[Mapping[str, object]]:
        """Return the step objects that this fragment completed."""
        self._text += fragment
        if self._next is None:
            if not (found := _STEPS.search(self._text)):
                return []
            self._next = found.end()
        fresh: list[Mapping[str, object]] = []
        # Only a closing brace can complete an object: other fragments need no decoding attempt.
        if "}" in fragment:
            while (step := self._next_step()) is not None:
                fresh.append(step)
        self._steps += fresh
        return fresh

    def restart(self) -> None:
        """Forget a reply that broke off; it is asked for again."""
        self._text, self._next, self._steps = "", None, []

    def finish(self, text: str) -> RawPlan:
        """Read the whole reply, repairing what streaming could not."""
        for candidate in _objects(text):
            if isinstance(answer := candidate.get("answer"), str) and answer.strip() and not candidate.get("steps"):
                return RawPlan(answer=answer.strip())
            steps = candidate.get("steps", candidate.get("plan"))
            if isinstance(steps, Mapping):
                steps = steps.get("steps")
            if isinstance(steps, list):
                found = tuple(step for step in steps if isinstance(step, Mapping))
                if found or not steps:
                    return RawPlan(steps=found, is_empty=not steps)
        return RawPlan(steps=tuple(self._steps) or _bare_list(text))

    def _next_step(self) -> Mapping[str, object] | None:
        """Return the next complete step object, passing over what is none."""
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
    """Return the JSON objects of a reply: strictly read ones, else the outermost braces repaired."""
    found: list[Mapping[str, object]] = []
    start = text.find("{")
    while start != -1:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except _UNREADABLE:
            break
        found.append(value)
        start = text.find("{", end)
    if not found and (first := text.find("{")) != -1:
        value, problem = parse_arguments(text[first : text.rfind("}") + 1])
        if problem is None:
            found.append(value)
    return found


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
