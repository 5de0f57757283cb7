"""The thread that starts boxed processes: bound once, never unbound, gone with its owner."""

import gc
import subprocess
import threading
import time

import pytest

from agent.backends.process.spawn_thread import Popen, SpawnThread


def start_process() -> Popen:
    return subprocess.Popen(["true"])


def test_all_start_from_one_thread_that_was_prepared_first() -> None:
    threads: list[int] = []

    def note() -> None:
        threads.append(threading.get_ident())

    def start() -> Popen:
        note()
        return start_process()

    spawner = SpawnThread(note)
    for _ in range(3):
        assert spawner(start).wait() == 0
    spawner.close()
    assert len(threads) == 4
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


def test_nothing_starts_from_a_thread_that_could_not_be_bound() -> None:
    def fail() -> None:
        raise OSError("no Landlock")

    spawner = SpawnThread(fail)
    for _ in range(2):
        with pytest.raises(OSError, match="no Landlock"):
            spawner(lambda: pytest.fail("started"))


def test_what_cannot_be_started_is_told_and_the_next_goes_on() -> None:
    spawner = SpawnThread(lambda: None)
    with pytest.raises(FileNotFoundError):
        spawner(lambda: subprocess.Popen(["/no/such/program"]))
    assert spawner(start_process).wait() == 0
    spawner.close()


def test_the_thread_tidies_up_and_ends_with_its_owner() -> None:
    ended: list[bool] = []
    spawner = SpawnThread(lambda: lambda: ended.append(True))
    spawner(start_process).wait()
    del spawner
    gc.collect()
    deadline = time.monotonic() + 5
    while not ended and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ended == [True]
