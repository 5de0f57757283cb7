"""Slots: the limit of concurrent tasks of a worker over all its queues; DBOS claims in a thread per queue."""

import threading
import time
from collections.abc import Callable, Sequence

# A claimed task whose workflow has not started by then never will: its function or input is unknown.
_ENTER_S = 60.0


class Slots:
    """Counts the tasks that this worker has claimed."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._lock = threading.Lock()
        # Time of the claim; None once the workflow has started.
        self._held: dict[str, float | None] = {}

    @property
    def held(self) -> int:
        """Number of tasks that are claimed or running."""
        with self._lock:
            return len(self._held)

    def free(self) -> int:
        """Return the number of tasks that may still be claimed."""
        with self._lock:
            latest = self._clock() - _ENTER_S
            for task_id in [key for key, since in self._held.items() if since is not None and since < latest]:
                del self._held[task_id]
            return self._limit - len(self._held)

    def claim(self, task_ids: Sequence[str]) -> None:
        """Count claimed tasks."""
        with self._lock:
            self._held.update(dict.fromkeys(task_ids, self._clock()))

    def enter(self, task_id: str) -> bool:
        """Count a task whose workflow starts, or resumes after a pause; False if no slot is free."""
        with self._lock:
            if task_id not in self._held and len(self._held) >= self._limit:
                return False
            self._held[task_id] = None
            return True

    def release(self, task_id: str) -> None:
        """Stop counting a task that has ended or waits for its next attempt."""
        with self._lock:
            self._held.pop(task_id, None)
