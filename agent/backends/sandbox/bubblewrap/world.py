"""The sandbox that all commands of a run share: /tmp, home, loopback and background processes."""

import asyncio
import contextlib
import marshal
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from agent.backends.process.output_capture import OutputCollector
from agent.backends.process.output_pipes import OutputPipes
from agent.backends.sandbox.bubblewrap.sandboxed_process import COULD_NOT_START, Memfd
from agent.backends.sandbox.bubblewrap.worker import Worker
from agent.backends.sandbox.bubblewrap.world_command import WorldCommand
from agent.backends.sandbox.process_limits import WorkerLimits
from agent.backends.sandbox.types import SandboxPolicy

# Printed by the relay to the proxy when it listens; the command then sleeps, because the relay ends with it.
_RELAY_COMMAND = ("/bin/sh", "-c", "echo ready; exec sleep infinity")
_RELAY_OUTPUT_BYTES = 4096
# Time for the last output of killed processes.
_DRAIN_S = 0.2


class WorldProcess(Protocol):
    """The first process of a world; all others end with it."""

    @property
    def exited(self) -> "asyncio.Future[None]":
        """A future that is done when it has ended."""
        ...

    async def finish(self, *, in_doubt: bool) -> int:
        """Wait until it exits, or kill it with `in_doubt`; return its exit code. Raises OSError if it never started."""
        ...

    def close_now(self) -> None:
        """Kill everything and release all resources, without waiting for the event loop."""
        ...


class World:
    """A started sandbox; its first process forks a worker for every command that runs at the same time."""

    def __init__(
        self,
        policy: SandboxPolicy,
        start: Callable[[int], WorldProcess],
        make_limits: Callable[[], WorkerLimits],
    ) -> None:
        self.policy = policy
        self._loop = asyncio.get_running_loop()
        self._make_limits = make_limits
        self._control, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._process = start(inner.fileno())
        except OSError:
            self._control.close()
            raise
        finally:
            inner.close()
        self._workers: set[Worker] = set()
        self._idle: list[Worker] = []
        self._kept_pipes: set[OutputPipes] = set()
        self._tasks: set[asyncio.Future[None]] = set()
        self._relay: WorldCommand | None = None
        self._relay_ready: asyncio.Future[None] = self._loop.create_future()
        self._ending: asyncio.Future[int] | None = None

    def is_usable(self, policy: SandboxPolicy) -> bool:
        """Whether commands with this policy can run here: everything mounted is the same, and it is alive."""
        return (
            policy == self.policy
            and not self._process.exited.done()
            and self._ending is None
            and asyncio.get_running_loop() is self._loop
        )

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs in it, not even in the background; the relay does not count."""
        busy = len(self._workers) - len(self._idle) - (self._relay is not None)
        return busy <= 0

    def start_command(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        sinks: Sequence[OutputCollector],
        *,
        stdin: int | None = None,
        keeps_processes: bool = False,
        wait_for: "asyncio.Future[None] | None" = None,
    ) -> WorldCommand:
        """Start a command. Raises OSError."""
        request = Memfd(marshal.dumps((list(argv), dict(env), str(cwd), stdin is not None)))
        return WorldCommand(
            self._take_worker(),
            request,
            sinks,
            stdin=stdin,
            keeps_processes=keeps_processes,
            wait_for=wait_for,
            on_end=self._end_command,
        )

    def open_relay(self, relay: Sequence[str], env: Mapping[str, str]) -> "asyncio.Future[None]":
        """Start the relay to the proxy unless it is running; the future is done when it listens, or has failed."""
        if self._relay is None or self._relay.exited.done():
            if self._relay is not None:
                self._relay.pipes.close()
                self._add_task(self._end_command(self._relay))
            sink = _FirstOutput(self._loop)
            self._relay = self.start_command((*relay, *_RELAY_COMMAND), env, Path("/"), (sink,))
            self._relay.exited.add_done_callback(lambda _: sink.set())
            self._relay_ready = sink.received
        return self._relay_ready

    async def stop(self) -> None:
        """End all processes, and wait for their end."""
        try:
            await self._end(in_doubt=True)
            if self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            self.close()

    def close(self) -> None:
        """End all processes at once; can be called without the event loop."""
        for pipes in self._kept_pipes:
            pipes.close()
        self._kept_pipes.clear()
        if self._relay is not None:
            self._relay.pipes.close()
        self._control.close()
        self._process.close_now()
        for worker in self._workers:
            worker.close()

    def _take_worker(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_idle:
                worker.reserve()
                return worker
        channel, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        worker = Worker(channel, self._make_limits())
        self._workers.add(worker)
        with inner, contextlib.suppress(OSError):
            # If the sandbox has ended, the closed channel shows it.
            socket.send_fds(self._control, [b"worker"], [inner.fileno()])
        return worker

    def _end_command(self, command: WorldCommand) -> "asyncio.Future[None]":
        worker = command.worker
        if command.is_kept and not worker.is_lost:
            self._keep(command.pipes)
            worker.empty.add_done_callback(lambda _: self._release(worker))
        elif worker.is_idle:
            command.pipes.close()
            self._release(worker)
        else:
            return self._add_task(asyncio.ensure_future(self._clean_up(command)))
        done: asyncio.Future[None] = self._loop.create_future()
        done.set_result(None)
        return done

    async def _clean_up(self, command: WorldCommand) -> None:
        """Kill the leftovers of a command, and end its worker: signals sent to it may arrive later."""
        worker = command.worker
        try:
            if worker.is_lost:
                await self._fail(worker)
            elif not command.has_started:
                await self._retire(worker)
            elif await worker.kill():
                await asyncio.wait({command.pipes.drained}, timeout=_DRAIN_S)
                await self._retire(worker)
            else:
                await self._fail(worker)
        finally:
            command.pipes.close()

    async def _fail(self, worker: Worker) -> None:
        """End the sandbox: it never started, a command killed its worker, or a command cannot be killed."""
        try:
            await self._end(in_doubt=worker.has_started)
            if not worker.has_started:
                raise OSError(f"{COULD_NOT_START}its first process ended")
        except OSError as problem:
            worker.error = worker.error or problem
        await self._retire(worker)

    async def _end(self, *, in_doubt: bool) -> None:
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._process.finish(in_doubt=in_doubt))
        await asyncio.shield(self._ending)

    async def _retire(self, worker: Worker) -> None:
        self._workers.discard(worker)
        await worker.retire()

    def _release(self, worker: Worker) -> None:
        if worker.is_idle and self._ending is None:
            self._idle.append(worker)

    def _keep(self, pipes: OutputPipes) -> None:
        self._kept_pipes.add(pipes)

        def end() -> None:
            if pipes in self._kept_pipes:
                self._kept_pipes.remove(pipes)
                pipes.close()

        pipes.discard(end)

    def _add_task(self, task: "asyncio.Future[None]") -> "asyncio.Future[None]":
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _FirstOutput(OutputCollector):
    """A collector that signals its first output."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(cap_bytes=_RELAY_OUTPUT_BYTES)
        self.received: asyncio.Future[None] = loop.create_future()

    def feed(self, data: bytes) -> None:
        """Add the next bytes."""
        super().feed(data)
        self.set()

    def set(self) -> None:
        """Stop waiting."""
        if not self.received.done():
            self.received.set_result(None)
