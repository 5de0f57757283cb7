"""Which steps may start now: pure bookkeeping over a graph that may still be growing."""

import posixpath
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import TypeAlias

from agent.vocabulary.plan import PlanStep

# A path as its parts: whatever lies beneath it begins with the same ones.
PathPrefix: TypeAlias = tuple[str, ...]
_WILDCARDS = frozenset("*?[{")


def write_prefixes(patterns: Iterable[str], root: str) -> tuple[PathPrefix, ...]:
    """Return where patterns may reach, each as the path before its first wildcard; relative ones lie in `root`."""
    return tuple(sorted({_literal_prefix(posixpath.normpath(posixpath.join(root, pattern))) for pattern in patterns}))


class WriteLocks:
    """The places that running steps hold; finding who is in the way costs the length of a path, not their number."""

    def __init__(self) -> None:
        self._prefixes: dict[str, tuple[PathPrefix, ...]] = {}
        self._holders: dict[PathPrefix, str] = {}
        self._ancestors: dict[PathPrefix, Counter[str]] = {}

    def find_holder(self, places: Iterable[PathPrefix]) -> str | None:
        """Return a step that holds one of the places, something above it or something beneath it."""
        for place in places:
            for length in range(len(place) + 1):
                if holder := self._holders.get(place[:length]):
                    return holder
            if beneath := self._ancestors.get(place):
                return next(iter(beneath))
        return None

    def acquire(self, step_id: str, places: tuple[PathPrefix, ...]) -> None:
        """Take places that nobody holds."""
        self._prefixes[step_id] = places
        for place in places:
            self._holders[place] = step_id
            for length in range(len(place)):
                self._ancestors.setdefault(place[:length], Counter())[step_id] += 1

    def release(self, step_id: str) -> None:
        """Give back what a step holds."""
        for place in self._prefixes.pop(step_id):
            del self._holders[place]
            for length in range(len(place)):
                self._remove_ancestor(place[:length], step_id)

    def _remove_ancestor(self, above: PathPrefix, step_id: str) -> None:
        holders = self._ancestors[above]
        holders[step_id] -= 1
        if not holders[step_id]:
            del holders[step_id]
        if not holders:
            del self._ancestors[above]


def _literal_prefix(path: str) -> PathPrefix:
    parts: list[str] = []
    for part in path.split("/"):
        if not _WILDCARDS.isdisjoint(part):
            break
        if part:
            parts.append(part)
    return tuple(parts)


# Steps that write the same places stand in one line, so that only its first has to be looked at; each has its turn.
_WriteQueue: TypeAlias = deque[tuple[int, PlanStep]]
SkippedStep: TypeAlias = tuple[PlanStep, str]


class ReadyQueue:
    """Steps go in while the plan streams; each comes out once, when its last dependency has succeeded."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._steps: dict[str, PlanStep] = {}
        self._prefixes: dict[str, tuple[PathPrefix, ...]] = {}
        self._missing: dict[str, set[str]] = {}
        self._dependents: defaultdict[str, list[str]] = defaultdict(list)
        self._succeeded: set[str] = set()
        self._failed: set[str] = set()
        self._running: set[str] = set()
        self._paused: set[str] = set()
        self._turns = count()
        self._ready: list[tuple[int, _WriteQueue]] = []
        self._write_queues: dict[tuple[PathPrefix, ...], _WriteQueue] = {}
        self._parked: defaultdict[str, list[_WriteQueue]] = defaultdict(list)
        self._locks = WriteLocks()
        self._is_sealed = False

    @property
    def is_done(self) -> bool:
        """Say whether the plan is complete and every step has ended."""
        # What is parked waits for a running step.
        return self._is_sealed and not (self._missing or self._ready or self._running)

    @property
    def active_count(self) -> int:
        """Return how many steps are being worked on: all that run, without those that wait for somebody."""
        return len(self._running) - len(self._paused)

    def is_unstarted(self, step_id: str) -> bool:
        """Say whether a step is known and has neither started nor been given up."""
        begun_or_ended = (self._running, self._succeeded, self._failed)
        return step_id in self._steps and not any(step_id in ids for ids in begun_or_ended)

    def add(self, step: PlanStep) -> list[SkippedStep]:
        """Take a step in; when a dependency has already failed, return it and what waits for it, with the reason."""
        if failed := [dep for dep in step.depends_on if dep in self._failed]:
            return self.add_skipped(step, _skip_reason(failed))
        self._steps[step.id] = step
        self._prefixes[step.id] = write_prefixes(step.writes, self._root)
        missing = {dep for dep in step.depends_on if dep not in self._succeeded}
        if self._is_sealed:
            missing &= self._steps.keys()
        for dep in missing:
            self._dependents[dep].append(step.id)
        self._missing[step.id] = missing
        self._enqueue_if_ready(step.id)
        return []

    def add_skipped(self, step: PlanStep, reason: str) -> list[SkippedStep]:
        """Take a step in that is not to be run; return it and what waits for it, with the reason."""
        self._steps[step.id] = step
        self._failed.add(step.id)
        return [(step, reason), *self._skip_dependents(step.id)]

    def seal(self) -> None:
        """Say that no further step comes; dependencies on steps that do not exist are dropped."""
        self._is_sealed = True
        for step_id in list(self._missing):
            self._missing[step_id] &= self._steps.keys()
            self._enqueue_if_ready(step_id)

    def revise(self, steps: Sequence[PlanStep], given_up: Sequence[SkippedStep] = ()) -> list[SkippedStep]:
        """Put other steps in the place of all that have not started; return those that can never run.

        Steps that are `given_up` are not to be run, for the reason beside them.
        """
        for step_id in [step_id for step_id in self._steps if self.is_unstarted(step_id)]:
            del self._steps[step_id]
        self._missing.clear()
        self._ready.clear()
        self._write_queues.clear()
        self._parked.clear()
        # Steps may depend on later ones: all must be known before the first is looked at.
        self._steps.update((step.id, step) for step in steps)
        doomed = [one for step, reason in given_up for one in self.add_skipped(step, reason)]
        return doomed + [one for step in steps for one in self.add(step)]

    def pop_ready(self, slots: int) -> list[PlanStep]:
        """Return up to `slots` steps that start now; steps that may write the same paths do not overlap."""
        taken: list[PlanStep] = []
        while self._ready and len(taken) < slots:
            _, line = heappop(self._ready)
            step = line[0][1]
            places = self._prefixes[step.id]
            if holder := self._locks.find_holder(places):
                self._parked[holder].append(line)
                continue
            self._running.add(step.id)
            self._locks.acquire(step.id, places)
            self._pop_first(line, places, step.id)
            taken.append(step)
        return taken

    def pause(self, step_id: str) -> None:
        """Give the slot of a running step to others while it waits for somebody."""
        if step_id in self._running:
            self._paused.add(step_id)

    def resume(self, step_id: str) -> None:
        """Count a step as working again; for a while there may be more of them than slots."""
        self._paused.discard(step_id)

    def finish(self, step_id: str, *, succeeded: bool) -> list[SkippedStep]:
        """Record how a step ended; return exactly the steps that can never run because of it, with the reason."""
        self._running.remove(step_id)
        self._paused.discard(step_id)
        self._locks.release(step_id)
        for line in self._parked.pop(step_id, []):
            heappush(self._ready, (line[0][0], line))
        if not succeeded:
            self._failed.add(step_id)
            return self._skip_dependents(step_id)
        self._succeeded.add(step_id)
        for dependent in self._dependents[step_id]:
            if dependent in self._missing:
                self._missing[dependent].discard(step_id)
                self._enqueue_if_ready(dependent)
        return []

    def pop_cyclic(self) -> list[SkippedStep]:
        """Return the steps of circles and what needs them, once nothing else is left to wait for."""
        if not self._is_sealed or self._running or self._ready:
            return []
        waiting, self._missing = self._missing, {}
        self._failed |= waiting.keys()
        circle = _find_cycle(waiting)
        reasons = {
            step_id: f"waits in a circle for {', '.join(sorted(missing))}"
            if step_id in circle
            else _skip_reason(missing)
            for step_id, missing in waiting.items()
        }
        return [(self._steps[step_id], reason) for step_id, reason in reasons.items()]

    def _enqueue_if_ready(self, step_id: str) -> None:
        if self._missing[step_id]:
            return
        del self._missing[step_id]
        turn, places = next(self._turns), self._prefixes[step_id]
        line = self._write_queues.get(places)
        if line is None:
            line = deque()
            heappush(self._ready, (turn, line))
            if places:
                self._write_queues[places] = line
        line.append((turn, self._steps[step_id]))

    def _pop_first(self, line: _WriteQueue, places: tuple[PathPrefix, ...], step_id: str) -> None:
        """Take the first out of its line; the others wait until it has ended."""
        line.popleft()
        if line:
            self._parked[step_id].append(line)
        else:
            self._write_queues.pop(places, None)

    def _skip_dependents(self, step_id: str) -> list[SkippedStep]:
        skipped: list[SkippedStep] = []
        queue = deque([step_id])
        while queue:
            failed = queue.popleft()
            for dependent in self._dependents[failed]:
                # A revision may have given a step other dependencies.
                if failed in self._missing.get(dependent, ()):
                    del self._missing[dependent]
                    self._failed.add(dependent)
                    skipped.append((self._steps[dependent], _skip_reason([failed])))
                    queue.append(dependent)
        return skipped


def _skip_reason(failed: Iterable[str]) -> str:
    return f"needs {', '.join(sorted(failed))}, which did not succeed"


def _find_cycle(waiting: dict[str, set[str]]) -> set[str]:
    """Return the steps that others in a circle wait for: what nobody waits for is no part of it."""
    needed = dict.fromkeys(waiting, 0)
    for missing in waiting.values():
        for dep in missing:
            needed[dep] += 1
    outer = deque(step_id for step_id, times in needed.items() if not times)
    circle = set(waiting)
    while outer:
        circle.discard(step_id := outer.popleft())
        for dep in waiting[step_id]:
            needed[dep] -= 1
            if not needed[dep]:
                outer.append(dep)
    return circle
