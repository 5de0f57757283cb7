"""The channel to a worker: what its messages mean."""

import asyncio
import os
import socket

import pytest

from agent.backends.sandbox.bubblewrap import worker as module
from agent.backends.sandbox.bubblewrap.worker import Worker
from agent.backends.sandbox.process_limits import WorkerLimits
from agent.backends.sandbox.types import ResourceLimits


async def test_the_exit_code_is_that_of_the_command_although_the_next_process_was_killed_with_its_leftovers() -> None:
    outside, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    worker = Worker(outside, WorkerLimits(ResourceLimits(), None))
    with inside:
        for message in (b"exited -9 1", b"taken", b"exited 0 0", b"empty", b"exited -9 1"):
            inside.send(message)
    # Finished by the end of the channel, after all messages.
    await asyncio.wait_for(worker.ready, 10)
    assert (worker.is_lost, worker.exit_code) == (True, 0)
    await worker.retire()


async def test_killing_takes_a_limited_time_however_long_one_try_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    outside, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    worker = Worker(outside, WorkerLimits(ResourceLimits(), None))
    loop = asyncio.get_running_loop()
    clock, late_s, tries = loop.time, 0.0, 0
    monkeypatch.setattr(loop, "time", lambda: clock() + late_s)

    def scan_slowly(pid: int) -> None:
        # A busy machine: each look at the processes takes nearly as long as killing may take altogether.
        nonlocal late_s, tries
        tries += 1
        late_s += module._KILL_S * 0.9

    monkeypatch.setattr(module, "kill_descendants", scan_slowly)
    monkeypatch.setattr(worker, "_pid", os.getpid())
    with inside:
        inside.send(b"taken")
        assert not await worker.kill()
    assert tries <= 2
    await worker.retire()
