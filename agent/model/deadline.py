"""A time limit for the waits of one stream."""

import asyncio
from types import TracebackType


class Deadline:
    """`with deadline: await …` raises TimeoutError like `asyncio.timeout_at`, but all waits share one timer.

    A reply has a wait for each of its fragments. The deadline can be moved at any time.
    """

    __slots__ = ("_cancelling", "_is_over", "_loop", "_task", "_timer", "_when")

    def __init__(self, when: float | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._when = when
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._is_over = False

    def move(self, seconds: float) -> None:
        """Set the deadline to this many seconds from now."""
        self._when = self._loop.time() + seconds
        if self._task is not None:
            self._start_timer(self._when)

    def close(self) -> None:
        """Stop the timer; may be called twice."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def __enter__(self) -> None:
        self._task = task = asyncio.current_task()
        assert task is not None
        self._cancelling = task.cancelling()
        if self._when is not None:
            self._start_timer(self._when)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if self._is_over and task is not None:
            self._is_over = False
            # If the task was also cancelled from elsewhere, it stays cancelled.
            if task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def _start_timer(self, when: float) -> None:
        """Start the timer, unless it ends early enough: then it finds out that the deadline has moved."""
        if self._timer is None or self._timer.when() > when:
            self.close()
            self._timer = self._loop.call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        due, self._timer = self._timer, None
        if self._task is None or self._when is None or due is None:
            return
        if self._when > due.when():
            self._start_timer(self._when)
        else:
            self._is_over = True
            self._task.cancel()
