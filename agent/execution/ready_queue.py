"""Which steps may start now: pure bookkeeping over a graph that may still be growing."""

from collections import defaultdict, deque
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import TypeAlias

from agent.vocabulary.plan import PlanStep

_Place: TypeAlias = tuple[str, ...]


class ReadyQueue:
    """Steps go in while the plan streams; each comes out once, when its last dependency has succeeded."""

    def __init__(self) -> None:
        self._steps: dict[str, PlanStep] = {}
        self._missing: dict[str, set[str]] = {}
        self._dependents: defaultdict[str, list[str]] = defaultdict(list)
        self._succeeded: set[str] = set()
        self._failed: set[str] = set()
        self._running: dict[str, PlanStep] = {}
        self._ready: deque[PlanStep] = deque()
        self._sealed = False
        self._places: dict[str, tuple[_Place, ...]] = {}

    @property
    def is_done(self) -> bool:
        """Say whether the plan is complete and every step has ended."""
        return self._sealed and not (self._missing or self._ready or self._running)

    @property
    def running(self) -> int:
        """Return how many steps are being worked on."""
        return len(self._running)

    def add(self, step: PlanStep) -> str | None:
        """Take a step in; return why it can never run when a dependency has already failed."""
        self._steps[step.id] = step
        self._places[step.id] = tuple(_fixed_part(pattern) for pattern in step.writes)
        if failed := [dep for dep in step.depends_on if dep in self._failed]:
            self._failed.add(step.id)
            return _needs(failed)
        missing = {dep for dep in step.depends_on if dep not in self._succeeded}
        for dep in missing:
            self._dependents[dep].append(step.id)
        if missing:
            self._missing[step.id] = missing
        else:
            self._ready.append(step)
        return None

    def seal(self) -> None:
        """Say that no further step comes; dependencies on steps that do not exist are dropped."""
        self._sealed = True
        for step_id in list(self._missing):
            self._missing[step_id] &= self._steps.keys()
            self._release(step_id)

    def take(self, slots: int) -> list[PlanStep]:
        """Return up to `slots` steps that start now; steps that may write the same paths do not overlap."""
        taken: list[PlanStep] = []
        for _ in range(len(self._ready)):
            if len(taken) >= slots:
                break
            step = self._ready.popleft()
            if any(_overlap(self._places[step.id], self._places[other]) for other in self._running):
                self._ready.append(step)
                continue
            self._running[step.id] = step
            taken.append(step)
        return taken

    def finish(self, step_id: str, *, succeeded: bool) -> list[tuple[PlanStep, str]]:
        """Record how a step ended; return exactly the steps that can never run because of it, with the reason."""
        del self._running[step_id]
        if not succeeded:
            self._failed.add(step_id)
            return self._skip_dependents(step_id)
        self._succeeded.add(step_id)
        for dependent in self._dependents[step_id]:
            if dependent in self._missing:
                self._missing[dependent].discard(step_id)
                self._release(dependent)
        return []

    def stuck(self) -> list[tuple[PlanStep, str]]:
        """Return the steps of cycles, once nothing else is left to wait for."""
        if not self._sealed or self._running or self._ready:
            return []
        cycle = [(self._steps[step_id], missing) for step_id, missing in self._missing.items()]
        self._missing.clear()
        self._failed |= {step.id for step, _ in cycle}
        return [(step, f"waits in a circle for {', '.join(sorted(missing))}") for step, missing in cycle]

    def _release(self, step_id: str) -> None:
        if not self._missing[step_id]:
            del self._missing[step_id]
            self._ready.append(self._steps[step_id])

    def _skip_dependents(self, step_id: str) -> list[tuple[PlanStep, str]]:
        skipped: list[tuple[PlanStep, str]] = []
        queue = deque([step_id])
        while queue:
            failed = queue.popleft()
            for dependent in self._dependents[failed]:
                if dependent in self._missing:
                    del self._missing[dependent]
                    self._failed.add(dependent)
                    skipped.append((self._steps[dependent], _needs([failed])))
                    queue.append(dependent)
        return skipped


def _needs(failed: Iterable[str]) -> str:
    return f"needs {', '.join(failed)}, which did not succeed"


def _overlap(first: Iterable[_Place], second: Iterable[_Place]) -> bool:
    """Say whether two sets of places may touch: equal, or one inside the other."""
    return any(left[: len(right)] == right[: len(left)] for left in first for right in second)


def _fixed_part(pattern: str) -> _Place:
    """Return the path before the first wildcard: what a pattern surely lies beneath."""
    parts: list[str] = []
    for part in PurePosixPath(pattern).parts:
        if any(mark in part for mark in "*?["):
            break
        parts.append(part)
    return tuple(parts)
