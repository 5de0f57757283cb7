"""How processor time grows with the size of an input: a ratio within one process, so no limit in seconds is needed."""

import time
from collections.abc import Callable

_ATTEMPTS = 5
_FACTOR = 4
# Linear work takes 4 times as long, quadratic work 16 times.
_LINEAR_BELOW = 9.0


def cpu_seconds(work: Callable[[], object], attempts: int = _ATTEMPTS) -> float:
    """Return the least processor time of several attempts: other programs evict the caches now and then."""
    took = []
    for _ in range(attempts):
        started = time.thread_time()
        work()
        took.append(time.thread_time() - started)
    return min(took)


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Assert that `work(size)` takes about four times as long as a quarter of it; one linear attempt suffices."""
    small, large = float("inf"), float("inf")
    for _ in range(_ATTEMPTS):
        small = min(small, cpu_seconds(lambda: work(size // _FACTOR), 1))
        large = min(large, cpu_seconds(lambda: work(size), 1))
        if large < _LINEAR_BELOW * small:
            return
    raise AssertionError(f"{_FACTOR} times the size takes {large / small:.1f} times as long: {large:.3f} s")
