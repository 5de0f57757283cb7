"""The box where bubblewrap is missing: Landlock and seccomp on the thread that starts commands."""

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
from tooling.contract.command import CommandRequest
from tooling.files.temp_dir import TempDir

_DEVICES = tuple(map(Path, ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")))
# Facts about the machine that programs ask for; nothing about its processes.
_PROC_FILES = tuple(Path("/proc", name) for name in ("cpuinfo", "meminfo", "stat", "filesystems", "version", "loadavg"))
# The command waits for a word before it becomes itself, so that its limits are on before it can start anything.
_GATE = ("/bin/sh", "-c", 'read -r go && exec "$@" </dev/null', "sh")
# The kernel counts all processes of the user, not only those of the box.
_PROCESSES_OF_OTHERS = 4096

_COVERED = (
    "writes: only the workspace, folders added by hand and a private folder for home and temporary files",
    "reads: the system, toolchains and those folders; not the home folder or other projects",
    "network: no sockets of any kind",
    "no capabilities, no new privileges, about 80 system calls refused by seccomp",
    "a clean environment, no open files, no terminal; what a command starts ends with it",
)
_NOT_COVERED = (
    "bubblewrap is not used: commands see this machine's users, host name and process numbers",
    "modes and times of files outside can be changed by their owner, and it can be told whether a path exists",
    ".git/hooks and .git/config in the workspace can be changed: look at them before you run git there yourself",
    "allowed hosts: there is no network at all, also not through the proxy",
    "a process that leaves its session and empties its environment may outlive its command",
    "before kernel 6.12 signals reach other processes of the same user",
)


class LandlockSandbox:
    """Starts commands from a bound thread; everything below it is bound as well."""

    def __init__(self, policy: SandboxPolicy, *, group_place: CgroupParent | None) -> None:
        if policy.hidden_folders or policy.hidden_files:
            raise SandboxError(
                "the workspace contains private folders, which only bubblewrap can hide",
                hint="choose a narrower folder or install bubblewrap",
            )
        self.policy = policy
        self._cgroup_parent = group_place
        self._seccomp_filter = landlock_filter(platform.machine())
        self._temporary = TempDir()
        self._scratch = self._temporary.path
        weakref.finalize(self, self._temporary.remove)
        self._private_folders = {"HOME": self._scratch / "home", "TMPDIR": self._scratch / "tmp"}
        for folder in self._private_folders.values():
            folder.mkdir(mode=0o700)
        self._workers = SpawnWorkerPool(self._restrict_thread, group_place, policy.limits)

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> "GatedProcess":
        """Start a command. Raises OSError when it cannot be started in this box."""
        private = {name: str(folder) for name, folder in self._private_folders.items()}
        env = {**self.policy.environment, **private, **request.env}
        check_request(request, self.policy, env.get("PATH", os.defpath))
        bounds = CommandLimiter(
            self.policy.limits, self._cgroup_parent, self._workers, processes_of_others=_PROCESSES_OF_OTHERS
        )
        gate_end, gate = os.pipe2(os.O_CLOEXEC)
        try:
            process = HostProcess.start(
                (*_GATE, *request.argv), cwd=request.cwd, env=env, sinks=sinks, stdin=gate_end, spawn=bounds.spawn
            )
        except BaseException:
            os.close(gate)
            bounds.discard()
            raise
        finally:
            os.close(gate_end)
        return GatedProcess(process, bounds, gate)

    def describe(self) -> SandboxDescription:
        """Return what the box covers and what it does not."""
        lacking = () if self._cgroup_parent else (NO_CGROUPS,)
        return SandboxDescription(name="landlock", covered=_COVERED, not_covered=(*_NOT_COVERED, *lacking))

    def close(self) -> None:
        """Remove the private folders."""
        self._workers.close()
        self._temporary.remove()

    def _restrict_thread(self) -> None:
        # The C library loads with the first command, in the thread that needs it.
        from agent.backends.sandbox.landlock.kernel import drop_capabilities, load_filter, restrict_files

        confinement = self.policy
        settings = tuple(document.path for document in confinement.generated_files if document.path.name != "gitconfig")
        drop_capabilities()
        restrict_files(
            writable=(*confinement.writable, self._scratch, *_DEVICES),
            readable=(*confinement.readable, *confinement.toolchains, *settings, *_PROC_FILES),
        )
        load_filter(self._seccomp_filter)


class GatedProcess:
    """A command of this box; its limits are on from its first moment."""

    def __init__(self, process: HostProcess, bounds: CommandLimiter, gate: int) -> None:
        self._process = process
        self._limiter = bounds
        self._error: OSError | None = None
        try:
            bounds.apply(process.pid)
            os.write(gate, b"go\n")
        except OSError as problem:
            # Nobody answers at the gate, so the command ends before it began.
            self._error = problem
        finally:
            os.close(gate)

    @property
    def exited(self) -> "Future[None]":
        """Return what is done as soon as the command itself has ended."""
        return self._process.exited

    async def stop(self, grace_s: float) -> None:
        """Ask the whole group to end, and wait a little for it to tidy up."""
        await self._process.stop(grace_s)

    async def finish(self, *, in_doubt: bool) -> int:
        """Leave nobody behind and return the exit code."""
        # Without a namespace or a control group a process can get away at any time: there is always doubt.
        is_certain = False
        try:
            is_certain = await self._limiter.kill()
        finally:
            try:
                code = await self._process.finish(in_doubt=not is_certain)
            finally:
                await self._limiter.release()
        if self._error is not None:
            raise OSError(f"the limits of the box could not be set: {self._error}")
        return code
