"""Decides which steps may start: pure bookkeeping over a graph that may still be growing."""

import posixpath
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from heapq import heappop, heappush
from itertools import count
from pathlib import PurePosixPath
from typing import TypeAlias

from agent.vocabulary.plan import PlanStep

# A path as its components: everything below it has the same leading components.
PathPrefix: TypeAlias = tuple[str, ...]
_WILDCARDS = frozenset("*?[{")


def write_prefixes(patterns: Iterable[str], root: str) -> tuple[PathPrefix, ...]:
    """Return each pattern's path up to its first wildcard; relative patterns are resolved against `root`."""
    return tuple(sorted({_literal_prefix(posixpath.normpath(posixpath.join(root, pattern))) for pattern in patterns}))


def names_path(pattern: str, path: str) -> bool:
    """Whether a declared path or pattern names a path, or a folder around it other than the workspace."""
    pattern = posixpath.normpath(pattern)
    folders = [path, *map(str, PurePosixPath(path).parents)]
    return bool(pattern.strip("*/.")) and any(fnmatchcase(folder, pattern) for folder in folders if folder != ".")


class WriteLocks:
    """The paths that running steps may write; finding a conflict costs the length of a path."""

    def __init__(self) -> None:
        self._prefixes: dict[str, tuple[PathPrefix, ...]] = {}
        self._holders: dict[PathPrefix, str] = {}
        self._ancestors: dict[PathPrefix, Counter[str]] = {}

    def find_holder(self, prefixes: Iterable[PathPrefix]) -> str | None:
        """Return a step that holds one of the paths, an ancestor or a descendant of it."""
        for prefix in prefixes:
            for length in range(len(prefix) + 1):
                if holder := self._holders.get(prefix[:length]):
                    return holder
            if beneath := self._ancestors.get(prefix):
                return next(iter(beneath))
        return None

    def acquire(self, step_id: str, prefixes: tuple[PathPrefix, ...]) -> None:
        """Lock paths that no other step holds."""
        self._prefixes[step_id] = prefixes
        for prefix in prefixes:
            self._holders[prefix] = step_id
            for length in range(len(prefix)):
                self._ancestors.setdefault(prefix[:length], Counter())[step_id] += 1

    def release(self, step_id: str) -> None:
        """Unlock the paths of a step."""
        for prefix in self._prefixes.pop(step_id):
            del self._holders[prefix]
            for length in range(len(prefix)):
                self._remove_ancestor(prefix[:length], step_id)

    def _remove_ancestor(self, ancestor: PathPrefix, step_id: str) -> None:
        holders = self._ancestors[ancestor]
        holders[step_id] -= 1
        if not holders[step_id]:
            del holders[step_id]
        if not holders:
            del self._ancestors[ancestor]


def _literal_prefix(path: str) -> PathPrefix:
    parts: list[str] = []
    for part in path.split("/"):
        if not _WILDCARDS.isdisjoint(part):
            break
        if part:
            parts.append(part)
    return tuple(parts)


# Steps that write the same paths share a queue, so only its head has to be checked. The number is the order of arrival.
_WriteQueue: TypeAlias = deque[tuple[int, PlanStep]]
SkippedStep: TypeAlias = tuple[PlanStep, str]


class ReadyQueue:
    """Accepts steps while the plan streams; returns each once, when its last dependency has succeeded."""

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
        """Whether the plan is complete and every step has ended."""
        # Parked queues need no check: each waits for a running step.
        return self._is_sealed and not (self._missing or self._ready or self._running)

    @property
    def active_count(self) -> int:
        """The number of running steps, without the paused ones."""
        return len(self._running) - len(self._paused)

    def is_unstarted(self, step_id: str) -> bool:
        """Whether a step is known and has neither started nor been skipped."""
        started = (self._running, self._succeeded, self._failed)
        return step_id in self._steps and not any(step_id in ids for ids in started)

    def add(self, step: PlanStep) -> list[SkippedStep]:
        """Add a step; if a dependency has already failed, return it and its dependents with the reason."""
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
        """Add a step that must not run; return it and its dependents with the reason."""
        self._steps[step.id] = step
        self._failed.add(step.id)
        return [(step, reason), *self._skip_dependents(step.id)]

    def seal(self) -> None:
        """Declare the plan complete; dependencies on steps that do not exist are dropped."""
        self._is_sealed = True
        for step_id in list(self._missing):
            self._missing[step_id] &= self._steps.keys()
            self._enqueue_if_ready(step_id)

    def revise(self, steps: Sequence[PlanStep], skipped: Sequence[SkippedStep] = ()) -> list[SkippedStep]:
        """Replace all steps that have not started; return those that can never run.

        The `skipped` steps belong to the plan and must not run, for the given reason.
        """
        for step_id in [step_id for step_id in self._steps if self.is_unstarted(step_id)]:
            del self._steps[step_id]
        self._missing.clear()
        self._ready.clear()
        self._write_queues.clear()
        self._parked.clear()
        # Steps may depend on later ones: all must be known before the first is added.
        self._steps.update((step.id, step) for step in steps)
        never_run = [one for step, reason in skipped for one in self.add_skipped(step, reason)]
        return never_run + [one for step in steps for one in self.add(step)]

    def pop_ready(self, slots: int) -> list[PlanStep]:
        """Return up to `slots` steps to start now; steps that may write the same paths never run together."""
        started: list[PlanStep] = []
        while self._ready and len(started) < slots:
            _, queue = heappop(self._ready)
            step = queue[0][1]
            prefixes = self._prefixes[step.id]
            if holder := self._locks.find_holder(prefixes):
                self._parked[holder].append(queue)
                continue
            self._running.add(step.id)
            self._locks.acquire(step.id, prefixes)
            self._pop_first(queue, prefixes, step.id)
            started.append(step)
        return started

    def pause(self, step_id: str) -> None:
        """Free the slot of a running step while it waits for the user or for a new plan."""
        if step_id in self._running:
            self._paused.add(step_id)

    def resume(self, step_id: str) -> None:
        """Count a step as active again; for a while more steps than slots may be active."""
        self._paused.discard(step_id)

    def finish(self, step_id: str, *, succeeded: bool) -> list[SkippedStep]:
        """Record the end of a step; return exactly the steps that can never run because of it, with the reason."""
        self._running.remove(step_id)
        self._paused.discard(step_id)
        self._locks.release(step_id)
        for queue in self._parked.pop(step_id, []):
            heappush(self._ready, (queue[0][0], queue))
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
        """Return the steps of dependency cycles and their dependents, once nothing else is left to run."""
        if not self._is_sealed or self._running or self._ready:
            return []
        waiting, self._missing = self._missing, {}
        self._failed |= waiting.keys()
        cycle = _find_cycle(waiting)
        reasons = {
            step_id: cycle_reason(missing) if step_id in cycle else _skip_reason(missing)
            for step_id, missing in waiting.items()
        }
        return [(self._steps[step_id], reason) for step_id, reason in reasons.items()]

    def _enqueue_if_ready(self, step_id: str) -> None:
        if self._missing[step_id]:
            return
        del self._missing[step_id]
        turn, prefixes = next(self._turns), self._prefixes[step_id]
        queue = self._write_queues.get(prefixes)
        if queue is None:
            queue = deque()
            heappush(self._ready, (turn, queue))
            if prefixes:
                self._write_queues[prefixes] = queue
        queue.append((turn, self._steps[step_id]))

    def _pop_first(self, queue: _WriteQueue, prefixes: tuple[PathPrefix, ...], step_id: str) -> None:
        """Remove the head of a queue; the others wait until that step has ended."""
        queue.popleft()
        if queue:
            self._parked[step_id].append(queue)
        else:
            self._write_queues.pop(prefixes, None)

    def _skip_dependents(self, step_id: str) -> list[SkippedStep]:
        skipped: list[SkippedStep] = []
        queue = deque([step_id])
        while queue:
            failed = queue.popleft()
            for dependent in self._dependents[failed]:
                # A revision may have changed the dependencies of a step.
                if failed in self._missing.get(dependent, ()):
                    del self._missing[dependent]
                    self._failed.add(dependent)
                    skipped.append((self._steps[dependent], _skip_reason([failed])))
                    queue.append(dependent)
        return skipped


IN_CYCLE = "is in a dependency cycle"


def cycle_reason(missing: Iterable[str]) -> str:
    return f"it {IN_CYCLE} with {', '.join(sorted(missing))}"


def _skip_reason(failed: Iterable[str]) -> str:
    return f"needs {', '.join(sorted(failed))}, which did not succeed"


def _find_cycle(waiting: dict[str, set[str]]) -> set[str]:
    """Return the steps on cycles, by repeatedly removing steps that no other step needs."""
    needed = dict.fromkeys(waiting, 0)
    for missing in waiting.values():
        for dep in missing:
            needed[dep] += 1
    leaves = deque(step_id for step_id, times in needed.items() if not times)
    cycle = set(waiting)
    while leaves:
        cycle.discard(step_id := leaves.popleft())
        for dep in waiting[step_id]:
            needed[dep] -= 1
            if not needed[dep]:
                leaves.append(dep)
    return cycle
