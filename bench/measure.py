"""What a measurement is: a figure with its limit, and samples taken in turns so that noise falls on all alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["×", "ms", "MB", "kB", "%", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    """One line of the table: what was measured, how much of it there may be, and what it was made of."""

    what: str
    measured: float
    limit: float
    unit: Unit
    detail: str

    @property
    def is_met(self) -> bool:
        """Say whether the limit holds."""
        return self.measured <= self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Figures that come out of the same runs, by a name for the command line."""

    name: str
    run: Callable[[], list[BenchResult]]


def sample_interleaved(rounds: int, *deeds: Callable[[], float]) -> list[list[float]]:
    """Return the samples of each deed; every round does each once, and the first round only warms the caches."""
    samples: list[list[float]] = [[] for _ in deeds]
    for number in range(rounds + 1):
        for deed, taken in zip(deeds, samples, strict=True):
            sample = deed()
            if number:
                taken.append(sample)
    return samples


def ratio(what: str, limit: float, samples: Sequence[float], floor: Sequence[float]) -> BenchResult:
    """Return how many times as long as the floor something takes, by the medians of both."""
    ours, theirs = median(samples), median(floor)
    detail = f"{format_ms(ours)} against {format_ms(theirs)}, {len(samples)} runs of each in turns"
    return BenchResult(what=what, measured=ours / theirs, limit=limit, unit="×", detail=detail)


def milliseconds(what: str, limit: float, samples: Sequence[float]) -> BenchResult:
    """Return the median of times."""
    worst = f"median of {len(samples)}, slowest {format_ms(max(samples))}"
    return BenchResult(what=what, measured=median(samples) * 1000, limit=limit, unit="ms", detail=worst)


def format_ms(seconds: float) -> str:
    """Return a time as a person reads it."""
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"
