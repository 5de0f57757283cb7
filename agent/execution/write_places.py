"""Which paths are being written, and by whom: two steps that may write the same path never work at once."""

import posixpath
from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

# A path as its parts: whatever lies beneath it begins with the same ones.
Place: TypeAlias = tuple[str, ...]
_WILDCARDS = frozenset("*?[{")


def places_of(patterns: Iterable[str], root: str) -> tuple[Place, ...]:
    """Return where patterns may reach, each as the path before its first wildcard; relative ones lie in `root`."""
    return tuple(sorted({_fixed_part(posixpath.normpath(posixpath.join(root, pattern))) for pattern in patterns}))


class WritePlaces:
    """The places that running steps hold; finding who is in the way costs the length of a path, not their number."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Place, ...]] = {}
        self._at: dict[Place, str] = {}
        self._above: dict[Place, Counter[str]] = {}

    def holder(self, places: Iterable[Place]) -> str | None:
        """Return a step that holds one of the places, something above it or something beneath it."""
        for place in places:
            for length in range(len(place) + 1):
                if holder := self._at.get(place[:length]):
                    return holder
            if beneath := self._above.get(place):
                return next(iter(beneath))
        return None

    def hold(self, step_id: str, places: tuple[Place, ...]) -> None:
        """Take places that nobody holds."""
        self._held[step_id] = places
        for place in places:
            self._at[place] = step_id
            for length in range(len(place)):
                self._above.setdefault(place[:length], Counter())[step_id] += 1

    def release(self, step_id: str) -> None:
        """Give back what a step holds."""
        for place in self._held.pop(step_id):
            del self._at[place]
            for length in range(len(place)):
                self._forget(place[:length], step_id)

    def _forget(self, above: Place, step_id: str) -> None:
        holders = self._above[above]
        holders[step_id] -= 1
        if not holders[step_id]:
            del holders[step_id]
        if not holders:
            del self._above[above]


def _fixed_part(path: str) -> Place:
    parts: list[str] = []
    for part in path.split("/"):
        if not _WILDCARDS.isdisjoint(part):
            break
        if part:
            parts.append(part)
    return tuple(parts)
