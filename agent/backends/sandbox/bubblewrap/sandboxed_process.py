"""A started bubblewrap: its first process waits until its limits are set, and all others end with it."""

import asyncio
import contextlib
import os
import signal
import subprocess
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from agent.backends.process.host_process import KILL_TIMEOUT_S, HostProcess
from agent.backends.process.output_capture import OutputCollector
from agent.backends.sandbox.bubblewrap.argv import BwrapFds
from agent.backends.sandbox.process_limits import CommandLimiter
from tooling.contract.lazy_pattern import lazy_pattern


class Memfd:
    """An anonymous file in memory, closed when it is garbage-collected."""

    def __init__(self, content: bytes) -> None:
        self.fd = os.memfd_create("windlass", os.MFD_CLOEXEC)
        weakref.finalize(self, os.close, self.fd)
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self.fd, rest) :]

    def open_reader(self) -> int:
        """Return a new descriptor with its own read position."""
        return os.open(f"/proc/self/fd/{self.fd}", os.O_RDONLY | os.O_CLOEXEC)


COULD_NOT_START = "the sandbox could not be started: "
_CHILD_PID = lazy_pattern(rb'"child-pid"\s*:\s*(\d+)\s*[,}]')
_EXIT_CODE_KEY = b'"exit-code"'
_READ_BYTES = 4096
_SIGNAL_EXIT_BASE = 128


class SandboxedProcess:
    """A started sandbox; its first process waits at the gate until its limits are set."""

    def __init__(
        self, process: HostProcess, *, status: int, gate: int, limiter: CommandLimiter, errors: OutputCollector
    ) -> None:
        self._process = process
        self._errors = errors
        self._limiter = limiter
        self._loop = asyncio.get_running_loop()
        self._status = status
        self._gate: int | None = gate
        self._status_output = b""
        self._init_pid: int | None = None
        self._pidfd: int | None = None
        self._error: OSError | None = None
        self._is_closed = False
        self._init_exited: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(status, False)
        self._loop.add_reader(status, self._read_status)

    @classmethod
    def start(
        cls,
        program: Path,
        options_for: Callable[[BwrapFds], Sequence[str]],
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        sinks: Sequence[OutputCollector],
        files: Iterable[Memfd],
        limiter: CommandLimiter,
        stdin: int = subprocess.DEVNULL,
    ) -> "SandboxedProcess":
        """Start a sandbox whose first process is `argv`; `files` are the seccomp filter and the generated files.

        Raises OSError.
        """
        status, status_end = os.pipe2(os.O_CLOEXEC)
        gate_end, gate = os.pipe2(os.O_CLOEXEC)
        passed = [status_end, gate_end]
        try:
            passed += [file.open_reader() for file in files]
            fds = BwrapFds(status=status_end, gate=gate_end, seccomp=passed[2], generated_files=tuple(passed[3:]))
            options = Memfd(b"".join(os.fsencode(word) + b"\0" for word in options_for(fds)))
            passed.append(options.open_reader())
            process = HostProcess.start(
                (str(program), "--args", str(passed[-1]), "--", *argv),
                cwd=Path("/"),
                env=env,
                sinks=sinks,
                stdin=stdin,
                pass_fds=tuple(passed),
                spawn=limiter.spawn,
            )
        except BaseException:
            os.close(status)
            os.close(gate)
            limiter.discard()
            raise
        finally:
            for fd in passed:
                os.close(fd)
        return cls(process, status=status, gate=gate, limiter=limiter, errors=sinks[-1])

    @property
    def exited(self) -> "asyncio.Future[None]":
        """A future that is done when the command itself has exited."""
        return self._process.exited

    def close_now(self) -> None:
        """Kill everything and release all resources, without waiting for the event loop."""
        if self._is_closed:
            return
        self._kill()
        self._process.close_now()
        self._close()
        self._limiter.discard()

    async def finish(self, *, in_doubt: bool) -> int:
        """Kill all remaining processes and return the exit code. Raises OSError if it never started."""
        try:
            if in_doubt:
                self._kill()
            await self._wait_for_init_exit()
        finally:
            try:
                # Without a first process there was no namespace whose end kills all processes.
                code = await self._process.finish(in_doubt=self._init_pid is None)
            finally:
                self._close()
                await self._limiter.release()
        if self._error is not None:
            raise self._error
        # A bubblewrap that was killed externally, for example by the OOM killer, did not fail to start.
        if not in_doubt and code < _SIGNAL_EXIT_BASE and _EXIT_CODE_KEY not in self._status_output:
            reason = self._errors.output.decode(errors="replace").strip() or "bubblewrap gave no reason"
            raise OSError(f"{COULD_NOT_START}{reason}")
        return code

    def _kill(self) -> None:
        # Bubblewrap and its first child are one process group until the sandbox is complete; after that we know the
        # process id of the child. Killing both leaves no moment in which one of them survives the other.
        self._process.kill()
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def _wait_for_init_exit(self) -> None:
        """Wait for the first process, which the kernel ends only after all others in its namespace."""
        self._read_status()
        if self._pidfd is None:
            return
        await asyncio.wait({self._init_exited}, timeout=KILL_TIMEOUT_S / 2)
        if not self._init_exited.done():
            self._kill()
            await asyncio.wait({self._init_exited}, timeout=KILL_TIMEOUT_S / 2)

    def _read_status(self) -> None:
        while True:
            try:
                data = os.read(self._status, _READ_BYTES)
            except BlockingIOError:
                break
            if not data:
                self._loop.remove_reader(self._status)
                break
            self._status_output += data
        found = _CHILD_PID.search(self._status_output)
        if found is not None and self._init_pid is None:
            # The rest is read at the end: bubblewrap writes it in ten pieces, each of which would wake the loop.
            self._loop.remove_reader(self._status)
            self._limit_and_release(int(found.group(1)))

    def _limit_and_release(self, pid: int) -> None:
        """Set the limits of the first process, then let it continue."""
        self._init_pid = pid
        try:
            self._pidfd = os.pidfd_open(pid)
            self._loop.add_reader(self._pidfd, self._on_init_exit)
            self._limiter.apply(pid)
        except ProcessLookupError:
            return
        except OSError as problem:
            self._error = OSError(f"the limits of the sandbox could not be set: {problem}")
            self._kill()
            return
        self._open_gate()

    def _open_gate(self) -> None:
        if self._gate is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._gate, b"go")
            os.close(self._gate)
            self._gate = None

    def _on_init_exit(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
        if not self._init_exited.done():
            self._init_exited.set_result(None)

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._remove_reader(self._status)
        os.close(self._status)
        if self._gate is not None:
            os.close(self._gate)
            self._gate = None
        if self._pidfd is not None:
            self._remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if not self._init_exited.done() and not self._loop.is_closed():
            self._init_exited.cancel()

    def _remove_reader(self, fd: int) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(fd)
