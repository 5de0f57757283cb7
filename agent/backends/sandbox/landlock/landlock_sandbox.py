"""The sandbox used without bubblewrap: Landlock and seccomp on the thread that starts commands."""

import os
import platform
import weakref
from asyncio import Future
from collections.abc import Sequence
from pathlib import Path

from agent.backends.process.host_process import HostProcess
from agent.backends.process.output_capture import OutputCollector
from agent.backends.sandbox.bubblewrap.bubblewrap_sandbox import NO_CGROUPS
from agent.backends.sandbox.cgroup import CgroupParent
from agent.backends.sandbox.process_limits import CommandLimiter, SpawnWorkerPool
from agent.backends.sandbox.seccomp import landlock_filter
from agent.backends.sandbox.types import SandboxDescription, SandboxPolicy, check_request
from agent.vocabulary.errors import SandboxError
from tooling.contract.command import BackgroundProcess, CommandRequest
from tooling.files.temp_dir import TempDir

_DEVICES = tuple(map(Path, ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")))
# Information about the machine that programs read; nothing about its processes.
_PROC_FILES = tuple(Path("/proc", name) for name in ("cpuinfo", "meminfo", "stat", "filesystems", "version", "loadavg"))
# Waits for a line before it executes the command, so that the limits are set before any process is started.
_GATE = ("/bin/sh", "-c", 'read -r go && exec "$@" </dev/null', "sh")
# The same for a command with its own input; the gate is the descriptor named first.
_GATE_BESIDE_INPUT = ("/bin/bash", "-c", 'read -r go <&"$0" && eval "exec $0<&-" && exec "$@"')
# The kernel counts all processes of the user, not only those of the sandbox.
_PROCESSES_OF_OTHERS = 4096

# /etc/gitconfig may contain secrets, so it is unreadable, and git does not start if it cannot read it.
_GIT_ENV = {"GIT_CONFIG_NOSYSTEM": "1"}

_COVERED = (
    "writes: only the workspace, added folders and a private folder for home and temporary files",
    "reads: the system, toolchains and those folders; not the home folder or other projects",
    "network: no sockets of any kind",
    "no capabilities, no new privileges, about 80 system calls refused by seccomp",
    "a clean environment, no open files, no terminal; processes end with their command",
)
_NOT_COVERED = (
    "commands see this machine's users, host name and process ids",
    "modes and times of the user's files outside can be changed, and commands can learn whether a path exists, its "
    "size and times, and where a link leads",
    "hooks and configuration of git can be changed; what makes git run programs is taken back when the command ends",
    "allowed hosts: there is no network at all, not even through the proxy",
    "a process that leaves its session and empties its environment may outlive its command",
    "before kernel 6.12, signals reach other processes of the same user",
)


NEEDS_BUBBLEWRAP = "the workspace contains private folders, which only bubblewrap can protect"


class LandlockSandbox:
    """Starts commands from a restricted thread; their processes inherit the restrictions."""

    def __init__(self, policy: SandboxPolicy, *, cgroup_parent: CgroupParent | None) -> None:
        if policy.hidden_folders or policy.hidden_files or policy.frozen:
            raise SandboxError(
                NEEDS_BUBBLEWRAP,
                hint="choose a narrower folder or install bubblewrap",
            )
        self.policy = policy
        self._cgroup_parent = cgroup_parent
        self._seccomp_filter = landlock_filter(platform.machine())
        self._temporary = TempDir()
        self._scratch = self._temporary.path
        weakref.finalize(self, self._temporary.remove)
        self._private_folders = {"HOME": self._scratch / "home", "TMPDIR": self._scratch / "tmp"}
        for folder in self._private_folders.values():
            folder.mkdir(mode=0o700)
        for file in policy.generated_files:
            if file.path.name == "gitconfig":
                (self._private_folders["HOME"] / ".gitconfig").write_bytes(file.content)
        self._workers = SpawnWorkerPool(self._restrict_thread, cgroup_parent, policy.limits)

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> "GatedProcess":
        """Start a command. Raises OSError if it cannot be started in this sandbox."""
        private = {name: str(folder) for name, folder in self._private_folders.items()}
        env = {**self.policy.environment, **_GIT_ENV, **private, **request.env}
        check_request(request, self.policy, env.get("PATH", os.defpath))
        limiter = CommandLimiter(
            self.policy.limits, self._cgroup_parent, self._workers, processes_of_others=_PROCESSES_OF_OTHERS
        )
        gate_end, gate = os.pipe2(os.O_CLOEXEC)
        try:
            has_input = request.stdin is not None
            process = HostProcess.start(
                (*((*_GATE_BESIDE_INPUT, str(gate_end)) if has_input else _GATE), *request.argv),
                cwd=request.cwd,
                env=env,
                sinks=sinks,
                stdin=gate_end if request.stdin is None else request.stdin,
                pass_fds=(gate_end,) if has_input else (),
                spawn=limiter.spawn,
            )
        except BaseException:
            os.close(gate)
            limiter.discard()
            raise
        finally:
            os.close(gate_end)
        return GatedProcess(process, limiter, gate)

    def describe(self) -> SandboxDescription:
        """Return the protections of the sandbox and their limits."""
        missing = () if self._cgroup_parent else (NO_CGROUPS,)
        return SandboxDescription(name="landlock", covered=_COVERED, not_covered=(*_NOT_COVERED, *missing))

    def close(self) -> None:
        """End the threads and remove the private folders."""
        self._workers.close()
        self._temporary.remove()

    def _restrict_thread(self) -> None:
        # Loads libc through ctypes, which is not needed before the first command.
        from agent.backends.sandbox.landlock.kernel import drop_capabilities, load_filter, restrict_files

        settings = tuple(file.path for file in self.policy.generated_files if file.path.name != "gitconfig")
        drop_capabilities()
        restrict_files(
            writable=(*self.policy.writable, self._scratch, *_DEVICES),
            readable=(*self.policy.readable, *self.policy.toolchains, *self.policy.outputs, *settings, *_PROC_FILES),
        )
        load_filter(self._seccomp_filter)


class GatedProcess:
    """A started command that waits until its limits are set."""

    def __init__(self, process: HostProcess, limiter: CommandLimiter, gate: int) -> None:
        self._process = process
        self._limiter = limiter
        self._error: OSError | None = None
        try:
            limiter.apply(process.pid)
            os.write(gate, b"go\n")
        except OSError as problem:
            # The gate is closed without a line, so the command ends before it starts.
            self._error = problem
        finally:
            os.close(gate)

    @property
    def exited(self) -> "Future[None]":
        """A future that is done when the command itself has exited."""
        return self._process.exited

    @property
    def left_running(self) -> tuple[BackgroundProcess, ...]:
        """Nothing: all processes end with the command."""
        return ()

    @property
    def ended_processes(self) -> int:
        """Number of leftover processes that were killed."""
        return self._process.ended_processes

    async def stop(self, grace_s: float) -> None:
        """Send SIGTERM to the process group, and give it time to clean up."""
        await self._process.stop(grace_s)

    async def finish(self, *, in_doubt: bool) -> int:
        """Kill all remaining processes and return the exit code."""
        # Without a namespace or a control group a process can always escape, so orphans are always searched for.
        is_empty = False
        try:
            if not in_doubt:
                self._process.kill_left_behind(in_doubt=False)
            is_empty = await self._limiter.kill()
        finally:
            try:
                code = await self._process.finish(in_doubt=not is_empty)
            finally:
                await self._limiter.release()
        if self._error is not None:
            raise OSError(f"the limits of the sandbox could not be set: {self._error}")
        return code
