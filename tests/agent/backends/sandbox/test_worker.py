"""The channel to a worker: what its messages mean."""

import asyncio
import socket

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
