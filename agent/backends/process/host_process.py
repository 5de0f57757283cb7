"""A process in its own session, watched by the event loop, that is killed with everything it started."""

import asyncio
import contextlib
import functools
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.backends.process.orphans import kill_orphans
from agent.backends.process.output_capture import OutputCollector
from agent.backends.process.output_pipes import OutputPipes
from agent.backends.process.spawn_thread import Spawn, spawn_directly
from agent.backends.process.watchdog import MARKER, get_watchdog
from tooling.contract.command import BackgroundProcess, CommandRequest

# Time for background children to continue writing after the command has exited.
LINGER_S = 0.2
# Time to wait for the kernel to end a killed process.
KILL_TIMEOUT_S = 2.0
# Process ids are not reused within this time.
PID_REUSE_SAFE_S = 5.0


def stdin_of(request: CommandRequest) -> int:
    """Return the stdin descriptor for the process of a request."""
    return subprocess.DEVNULL if request.stdin is None else request.stdin


class HostProcess:
    """A started process; its output is collected until all processes that hold its pipes have ended."""

    def __init__(self, popen: "subprocess.Popen[bytes]", marker: str, sinks: Sequence[OutputCollector]) -> None:
        self._popen = popen
        self._marker = marker
        self._loop = asyncio.get_running_loop()
        self._pidfd: int | None = None
        self._is_closed = False
        self._started_at = self._loop.time()
        self.should_kill_orphans = False
        self.ended_processes = 0
        self.exited = self._watch_exit()
        pipes = [pipe.fileno() for pipe in (popen.stdout, popen.stderr) if pipe is not None]
        self._pipes = OutputPipes(pipes, sinks)

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        sinks: Sequence[OutputCollector],
        stdin: int = subprocess.DEVNULL,
        pass_fds: tuple[int, ...] = (),
        spawn: Spawn = spawn_directly,
    ) -> "HostProcess":
        """Start a process, by default without input; a second sink receives stderr separately."""
        marker = get_watchdog().add_command()
        start: functools.partial[subprocess.Popen[bytes]] = functools.partial(
            subprocess.Popen,
            list(argv),
            cwd=cwd,
            env={**env, MARKER: marker},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if len(sinks) == 1 else subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
            pass_fds=pass_fds,
        )
        try:
            popen = spawn(start)
        except BaseException:
            get_watchdog().remove_command()
            raise
        return cls(popen, marker, sinks)

    @property
    def pid(self) -> int:
        """The id of the started process, which is also that of its group and session."""
        return self._popen.pid

    @property
    def left_running(self) -> tuple[BackgroundProcess, ...]:
        """Nothing: all processes end with the command."""
        return ()

    def kill(self) -> None:
        """Kill the process group without waiting for its end."""
        self._signal(signal.SIGKILL)

    async def stop(self, grace_s: float) -> None:
        """Send SIGTERM to the process group, and give it a moment to clean up."""
        self._signal(signal.SIGTERM)
        await asyncio.wait({self.exited, self._pipes.drained}, timeout=grace_s)

    async def finish(self, *, in_doubt: bool) -> int:
        """Kill the process group and return the exit code; `in_doubt` also kills children that left the group."""
        try:
            if not in_doubt and not self._pipes.drained.done():
                await asyncio.wait({self._pipes.drained}, timeout=LINGER_S)
                in_doubt = not self._pipes.drained.done()
            if self.exited.done() and (in_doubt or self.should_kill_orphans):
                # Before the group is killed, because its members would not be counted afterwards.
                self.kill_left_behind(in_doubt=in_doubt)
            self._signal(signal.SIGKILL)
            await asyncio.wait({self.exited}, timeout=KILL_TIMEOUT_S)
            if in_doubt or self.should_kill_orphans:
                self._kill_orphans(in_doubt=in_doubt)
                await asyncio.wait({self._pipes.drained}, timeout=LINGER_S)
        finally:
            code = self.close_now()
        return code

    def kill_left_behind(self, *, in_doubt: bool) -> None:
        """Kill and count the processes that a command left behind."""
        self.ended_processes += self._kill_orphans(in_doubt=in_doubt)

    def _kill_orphans(self, *, in_doubt: bool) -> int:
        is_short = not in_doubt and self._loop.time() - self._started_at < PID_REUSE_SAFE_S
        return kill_orphans(session=self._popen.pid, marker=f"{MARKER}={self._marker}", only_younger=is_short)

    def close_now(self) -> int:
        """Kill the process group, release all resources and return the exit code."""
        # The group is killed before its leader is reaped: until then its id cannot be reused.
        self._signal(signal.SIGKILL)
        self._is_closed = True
        self._pipes.stop()
        self._unwatch_exit()
        for pipe in (self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout=KILL_TIMEOUT_S)
            get_watchdog().remove_command()
        if not self.exited.done() and not self._loop.is_closed():
            self.exited.cancel()
        code = self._popen.returncode
        return 128 - code if code is not None and code < 0 else code or 0

    def _signal(self, number: signal.Signals) -> None:
        if not self._is_closed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, number)

    def _watch_exit(self) -> "asyncio.Future[None]":
        exited: asyncio.Future[None] = self._loop.create_future()

        def ended(_: object = None) -> None:
            self._unwatch_exit()
            if not exited.done():
                exited.set_result(None)

        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(self._popen.pid)
            self._loop.add_reader(self._pidfd, ended)
        else:
            self._loop.run_in_executor(None, self._popen.wait).add_done_callback(ended)
        return exited

    def _unwatch_exit(self) -> None:
        if self._pidfd is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
