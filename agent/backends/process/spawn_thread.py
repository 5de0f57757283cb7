"""A thread that starts processes and does nothing else: what binds it, binds them, and they live no longer than it."""

import subprocess
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeAlias

Popen: TypeAlias = subprocess.Popen[bytes]
Start: TypeAlias = Callable[[], Popen]
Spawn: TypeAlias = Callable[[Start], Popen]
_SpawnResult: TypeAlias = Popen | BaseException
Prepare: TypeAlias = Callable[[], Callable[[], None] | None]
_Job: TypeAlias = tuple[Start, "SimpleQueue[_SpawnResult]"]

_JOIN_TIMEOUT_S = 0.5


def spawn_directly(start: Start) -> Popen:
    """Start a process from the calling thread."""
    return start()


class SpawnThread:
    """Starts processes from one thread that `prepare` has bound before the first of them.

    The kernel ties both to the thread: Landlock and seccomp are inherited from it alone, and a box that dies with its
    parent dies with the thread that started it. So there is one thread, and it lasts as long as its spawner. What
    `prepare` returns is called in the thread at its end.
    """

    def __init__(self, prepare: Prepare) -> None:
        self._prepare = prepare
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._finalizer = weakref.finalize(self, _stop_thread, self._jobs, self._threads)

    def __call__(self, start: Start) -> Popen:
        """Start a process; raises what `prepare` or the start raised, and then nothing was started."""
        if not self._finalizer.alive:
            raise OSError("the box has been closed")
        with self._lock:
            if not self._threads:
                self._threads.append(self._start_thread())
        answer: SimpleQueue[_SpawnResult] = SimpleQueue()
        self._jobs.put((start, answer))
        found = answer.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def close(self) -> None:
        """End the thread, and with it what still runs in boxes that it started; nothing can be started any more."""
        self._finalizer()

    def _start_thread(self) -> threading.Thread:
        ready: SimpleQueue[BaseException | None] = SimpleQueue()
        thread = threading.Thread(
            target=_serve, args=(self._prepare, ready, self._jobs), name="windlass-spawner", daemon=True
        )
        thread.start()
        problem = ready.get()
        if problem is not None:
            raise problem
        return thread


def _serve(prepare: Prepare, ready: "SimpleQueue[BaseException | None]", jobs: "SimpleQueue[_Job | None]") -> None:
    try:
        tidy_up = prepare()
    except BaseException as problem:  # noqa: BLE001 (handed to the caller: no process starts from an unbound thread)
        ready.put(problem)
        return
    # The thread must not keep alive what is to end it.
    del prepare
    ready.put(None)
    while (job := jobs.get()) is not None:
        start, answer = job
        try:
            answer.put(start())
        except BaseException as problem:  # noqa: BLE001 (handed to the caller, who is the one to judge it)
            answer.put(problem)
        del job, start, answer
    if tidy_up is not None:
        tidy_up()


def _stop_thread(jobs: "SimpleQueue[_Job | None]", threads: list[threading.Thread]) -> None:
    """Ask the thread to end and give it a moment; also at the end of the program, when nobody closed anything."""
    jobs.put(None)
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(_JOIN_TIMEOUT_S)
