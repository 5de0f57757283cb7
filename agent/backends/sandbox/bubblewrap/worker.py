"""A worker in the sandbox, as seen from the host: one command at a time, with all its processes."""

import asyncio
import errno
import os
import signal
import socket
import struct
from collections.abc import Sequence

from agent.backends.process.orphans import descendants, kill_descendants
from agent.backends.sandbox.bubblewrap.starter_main import EMPTY, EXITED, FAILED, GO, MESSAGE_BYTES, READY, RUN, TAKEN
from agent.backends.sandbox.process_limits import WorkerLimits

_CREDENTIALS = struct.Struct("3i")
_SIGNAL_EXIT_BASE = 128
# The exit code of a command whose worker was killed.
KILLED = _SIGNAL_EXIT_BASE + signal.SIGKILL
# After this time the whole sandbox is killed, which the kernel does at once.
_KILL_S = 2.0
_POLL_S = 0.02


class Worker:
    """The channel to a worker. Its process id comes from the kernel, and its messages from no other process."""

    def __init__(self, channel: socket.socket, limits: WorkerLimits) -> None:
        self._loop = asyncio.get_running_loop()
        self._channel = channel
        self._limits = limits
        self._pid: int | None = None
        self.ready: asyncio.Future[None] = self._loop.create_future()
        # Done when a process has received the command, and killing it means killing the command.
        self.taken: asyncio.Future[None] = self._loop.create_future()
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self.empty: asyncio.Future[None] = self._loop.create_future()
        self.exit_code = KILLED
        self.error: OSError | None = None
        self.is_lost = False
        channel.setblocking(False)
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._loop.add_reader(channel, self._receive)

    @property
    def has_started(self) -> bool:
        """Whether it exists in the sandbox."""
        return self._pid is not None

    @property
    def is_idle(self) -> bool:
        """Whether it can run the next command."""
        return self.ready.done() and self.empty.done() and not self.is_lost

    def reserve(self) -> None:
        """Reset the state of the previous command."""
        self.taken, self.exited, self.empty = (self._loop.create_future() for _ in range(3))
        self.exit_code, self.error = KILLED, None

    def run(self, request: int, streams: Sequence[int]) -> None:
        """Start the command described in a file; it reads from and writes to these pipes."""
        try:
            socket.send_fds(self._channel, [RUN], [request, *streams])
        except OSError:
            self._lose()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the command."""
        for pid in self.processes():
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                continue

    def processes(self) -> list[int]:
        """Return the processes of the command."""
        return [] if self._pid is None or self.empty.done() else descendants(self._pid)

    async def kill(self) -> bool:
        """Kill all processes of the command; return whether the worker confirms that none is left."""
        # Limited by time, not by the number of attempts: on a busy machine each takes far longer.
        deadline = self._loop.time() + _KILL_S
        await asyncio.wait({self.taken}, timeout=_KILL_S)
        if not self.taken.done():
            return False
        while self._loop.time() < deadline:
            if self.empty.done() or self._pid is None:
                break
            kill_descendants(self._pid)
            try:
                # The command may have stopped it.
                os.kill(self._pid, signal.SIGCONT)
            except ProcessLookupError:
                break
            await asyncio.wait({self.empty}, timeout=_POLL_S)
        return self.empty.done() and not self.is_lost

    async def retire(self) -> None:
        """Close the channel, which ends the worker, and remove its limits."""
        self._close_channel()
        await self._limits.release()

    def close(self) -> None:
        """Close the channel of a worker that has been killed."""
        self._close_channel()
        self._limits.discard()

    def _close_channel(self) -> None:
        if self._channel.fileno() >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._channel)
            self._channel.close()
        self._lose()

    def _receive(self) -> None:
        try:
            data, ancillary, _, _ = self._channel.recvmsg(MESSAGE_BYTES, socket.CMSG_SPACE(_CREDENTIALS.size))
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        kind, *numbers = data.split() or (b"",)
        if kind == READY:
            self._set_limits(next(_CREDENTIALS.unpack(found)[0] for _, _, found in ancillary))
        elif kind == TAKEN:
            _finish(self.taken)
        elif kind == EXITED and (self.exited.done() or not self.taken.done()):
            # A process forked in advance was killed before it received a command, for example with the leftovers of the
            # last one; the next process replaces it.
            pass
        elif kind == EXITED:
            code, is_empty = map(int, numbers)
            self.exit_code = code if code >= 0 else _SIGNAL_EXIT_BASE - code
            _finish(self.exited)
            if is_empty:
                _finish(self.empty)
        elif kind == EMPTY:
            _finish(self.empty)
        elif kind == FAILED:
            number = int(numbers[0]) or errno.EIO
            self.error = OSError(number, os.strerror(number))
        else:
            self._lose()

    def _set_limits(self, pid: int) -> None:
        self._pid = pid
        try:
            self._limits.apply(pid)
        except OSError as problem:
            self.error = OSError(f"the limits of the sandbox could not be set: {problem}")
            self._lose()
            return
        try:
            self._channel.send(GO)
        except OSError:
            self._lose()
            return
        _finish(self.ready)

    def _lose(self) -> None:
        if not self.is_lost:
            self.is_lost = True
            if not self._loop.is_closed():
                if self._channel.fileno() >= 0:
                    self._loop.remove_reader(self._channel)
                for future in (self.ready, self.taken, self.exited, self.empty):
                    _finish(future)


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
