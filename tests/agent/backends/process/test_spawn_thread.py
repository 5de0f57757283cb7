"""The thread that starts sandboxed processes: restricted once, and ended with its owner."""

import gc
import subprocess
import threading

import pytest

from agent.backends.process.spawn_thread import Popen, SpawnThread


def start_process() -> Popen:
    return subprocess.Popen(["true"])


def test_all_processes_start_from_one_prepared_thread() -> None:
    threads: list[int] = []

    def record() -> None:
        threads.append(threading.get_ident())

    def start() -> Popen:
        record()
        return start_process()

    spawner = SpawnThread(record)
    for _ in range(3):
        assert spawner(start).wait() == 0
    spawner.close()
    assert len(threads) == 4
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


def test_nothing_starts_if_the_thread_cannot_be_prepared() -> None:
    def fail() -> None:
        raise OSError("no Landlock")

    spawner = SpawnThread(fail)
    for _ in range(2):
        with pytest.raises(OSError, match="no Landlock"):
            spawner(lambda: pytest.fail("started"))


def test_a_failed_start_is_raised_and_the_next_one_works() -> None:
    spawner = SpawnThread(lambda: None)
    with pytest.raises(FileNotFoundError):
        spawner(lambda: subprocess.Popen(["/no/such/program"]))
    assert spawner(start_process).wait() == 0
    spawner.close()


def test_the_thread_cleans_up_when_its_owner_is_collected() -> None:
    ended = threading.Event()
    spawner = SpawnThread(lambda: ended.set)
    spawner(start_process).wait()
    del spawner
    gc.collect()
    assert ended.wait(timeout=120)
