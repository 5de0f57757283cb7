"""One command in a sandbox that it shares with the other commands of the run."""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence

from agent.backends.process.host_process import LINGER_S
from agent.backends.process.orphans import find_background
from agent.backends.process.output_capture import OutputCollector
from agent.backends.process.output_pipes import OutputPipes
from agent.backends.sandbox.bubblewrap.sandboxed_process import Memfd
from agent.backends.sandbox.bubblewrap.worker import Worker
from tooling.contract.command import BackgroundProcess


class WorldCommand:
    """A command that starts when its worker and its prerequisites are ready.

    `on_end` receives the worker, and the pipes if background processes still hold them.
    """

    def __init__(
        self,
        worker: Worker,
        request: Memfd,
        sinks: Sequence[OutputCollector],
        *,
        stdin: int | None = None,
        keeps_processes: bool,
        wait_for: "asyncio.Future[None] | None",
        on_end: Callable[["WorldCommand"], "asyncio.Future[None]"],
    ) -> None:
        self.worker = worker
        self.is_kept = False
        self.left_running: tuple[BackgroundProcess, ...] = ()
        self.ended_processes = 0
        self._request: Memfd | None = request
        self._keeps_processes = keeps_processes
        self._on_end = on_end
        self._wait_for = wait_for
        pipes = [os.pipe2(os.O_CLOEXEC) for _ in sinks]
        self._outputs = [write for _, write in pipes]
        # A copy: the command may start only after the caller has closed its own.
        self._inputs = [] if stdin is None else [os.dup(stdin)]
        self.pipes = OutputPipes([read for read, _ in pipes], sinks)
        for future in (worker.ready, wait_for):
            if future is not None and not future.done():
                future.add_done_callback(lambda _: self._start())
        self._start()

    @property
    def exited(self) -> "asyncio.Future[None]":
        """A future that is done when the command itself has exited."""
        return self.worker.exited

    @property
    def has_started(self) -> bool:
        """Whether the command was passed to its worker."""
        return self._request is None

    async def stop(self, grace_s: float) -> None:
        """Send SIGTERM to all processes of the command, and give them time to clean up."""
        if self.has_started:
            await asyncio.wait({self.worker.taken}, timeout=grace_s)
        if self.worker.taken.done():
            self.worker.send_signal(signal.SIGTERM)
            await asyncio.wait({self.exited}, timeout=grace_s)

    async def finish(self, *, in_doubt: bool) -> int:
        """Kill the remaining processes unless they may stay, and return the exit code. Raises OSError."""
        try:
            if not in_doubt:
                await self._wait_for_output()
        finally:
            self._close_ends()
            # Killing continues even if this call is cancelled.
            await asyncio.shield(self._on_end(self))
        if self.worker.error is not None:
            raise self.worker.error
        return self.worker.exit_code

    async def _wait_for_output(self) -> None:
        worker = self.worker
        if not self.pipes.drained.done():
            await asyncio.wait({self.pipes.drained}, timeout=LINGER_S)
        if worker.empty.done():
            return
        left = find_background(worker.processes())
        self.is_kept = self._keeps_processes and bool(left)
        if self.is_kept:
            self.left_running = left
        else:
            self.ended_processes = len(left)

    def _start(self) -> None:
        is_waiting = any(future is not None and not future.done() for future in (self.worker.ready, self._wait_for))
        if is_waiting or self.worker.is_lost or self._request is None or not self._outputs:
            return
        self.worker.run(self._request.fd, [*self._inputs, *self._outputs])
        self._request = None
        self._close_ends()

    def _close_ends(self) -> None:
        ends, self._inputs, self._outputs = [*self._inputs, *self._outputs], [], []
        for end in ends:
            os.close(end)
