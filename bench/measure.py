"""Figures with limits, and interleaved samples, so that noise affects all candidates equally."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["×", "ms", "MB", "kB", "%", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    """One row of the table: the figure, its limit, and how it was obtained."""

    what: str
    measured: float
    limit: float
    unit: Unit
    detail: str

    @property
    def is_met(self) -> bool:
        return self.measured <= self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A named benchmark with one or more figures."""

    name: str
    run: Callable[[], list[BenchResult]]


def sample_interleaved(rounds: int, *measurements: Callable[[], float]) -> list[list[float]]:
    """Return the samples of each measurement; every round takes one of each, and the first round is a warm-up."""
    samples: list[list[float]] = [[] for _ in measurements]
    for number in range(rounds + 1):
        for measure, collected in zip(measurements, samples, strict=True):
            sample = measure()
            if number:
                collected.append(sample)
    return samples


def ratio(what: str, limit: float, samples: Sequence[float], baseline: Sequence[float]) -> BenchResult:
    """Return the ratio of the medians of samples and baseline."""
    ours, theirs = median(samples), median(baseline)
    detail = f"{format_ms(ours)} against {format_ms(theirs)}, {len(samples)} interleaved runs of each"
    return BenchResult(what=what, measured=ours / theirs, limit=limit, unit="×", detail=detail)


def milliseconds(what: str, limit: float, samples: Sequence[float]) -> BenchResult:
    """Return the median of the samples."""
    worst = f"median of {len(samples)}, slowest {format_ms(max(samples))}"
    return BenchResult(what=what, measured=median(samples) * 1000, limit=limit, unit="ms", detail=worst)


def format_ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"
