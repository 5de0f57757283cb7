"""A thread that only starts processes, which inherit its restrictions and end with it."""

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
    """Starts processes from one thread, which `prepare` restricts before the first of them.

    Both depend on the thread: Landlock and seccomp are inherited from it alone, and a sandbox that dies with its
    parent dies with the thread that started it. So there is a single thread, which lives as long as this object. The
    function that `prepare` returns is called in the thread at its end.
    """

    def __init__(self, prepare: Prepare) -> None:
        self._prepare = prepare
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._finalizer = weakref.finalize(self, _stop_thread, self._jobs, self._threads)

    def __call__(self, start: Start) -> Popen:
        """Start a process. If `prepare` or the start raises, the exception is raised here and nothing was started."""
        if not self._finalizer.alive:
            raise OSError("the sandbox has been closed")
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
        """End the thread, and with it the sandboxes it started; no process can be started afterwards."""
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
        clean_up = prepare()
    except BaseException as problem:  # noqa: BLE001 (raised in the caller: no process starts from an unrestricted thread)
        ready.put(problem)
        return
    # The thread must not keep alive the object whose deletion ends it.
    del prepare
    ready.put(None)
    while (job := jobs.get()) is not None:
        start, answer = job
        try:
            answer.put(start())
        except BaseException as problem:  # noqa: BLE001 (raised in the caller)
            answer.put(problem)
        del job, start, answer
    if clean_up is not None:
        clean_up()


def _stop_thread(jobs: "SimpleQueue[_Job | None]", threads: list[threading.Thread]) -> None:
    """Ask the thread to end and wait briefly; also runs at interpreter exit if `close` was not called."""
    jobs.put(None)
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(_JOIN_TIMEOUT_S)
