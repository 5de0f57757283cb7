"""The Linux sandbox: runs the commands of a run in bubblewrap."""

import platform
import stat
from pathlib import Path

from agent.backends.egress.relay import relay_interpreter
from agent.backends.process.output_capture import OutputCollector
from agent.backends.sandbox.bubblewrap.argv import STARTER, bwrap_options
from agent.backends.sandbox.bubblewrap.sandboxed_process import Memfd, SandboxedProcess
from agent.backends.sandbox.bubblewrap.world_sandbox import WorldSandbox
from agent.backends.sandbox.cgroup import CgroupParent
from agent.backends.sandbox.process_limits import CommandLimiter, SpawnWorkerPool, WorkerLimits
from agent.backends.sandbox.seccomp import bubblewrap_filter
from agent.backends.sandbox.types import ResourceLimits, SandboxDescription, SandboxPolicy

_ERROR_BYTES = 4096
# The first process itself; its workers get the limits of a command.
_UNLIMITED = ResourceLimits(processes=None, memory_bytes=None, file_bytes=None, open_files=None)

_COVERED = (
    "writes: only the workspace and added folders, without what git reads as configuration or runs",
    "reads: the system, toolchains and those folders; not the home folder, /etc, /var, /run or other projects",
    "network: the sandbox's own loopback, and the proxy's socket when hosts are allowed",
    "own users, processes, shared memory and host name; no capabilities; about 60 system calls refused by seccomp",
    "a clean environment, no open files, no terminal; processes end with their command, at the latest with the run",
    "Landlock around the sandbox: no signals and no abstract sockets to the outside (kernel 6.12 or newer)",
)
# Why Landlock does not repeat the file rules inside: a thread under such rules cannot mount, so they cannot be set
# before bubblewrap has built the sandbox, and the starter inside sets none.
_SHARED = (
    "commands of one run share files in /tmp and home, loopback and processes: one can change the output, the files "
    "and the background processes of another, but not its exit code, limits or approval"
)
GIT_WINDOW = (
    "code for git where there was none, as in a repository that a command creates: it is taken back when the command "
    "ends; git that you start before that would run it"
)
_NOT_COVERED = (
    "the file rules are enforced by bubblewrap alone; Landlock does not repeat them inside",
    _SHARED,
    GIT_WINDOW,
    "programs of the workspace that you run later outside the sandbox",
    "the total size of files written to the workspace, as long as some disk space is left",
)

NO_CGROUPS = "the total memory of a command, and for root its number of processes: no control groups are available"


class BubblewrapSandbox(WorldSandbox):
    """Runs all commands in one bubblewrap."""

    def __init__(
        self,
        policy: SandboxPolicy,
        *,
        program: Path,
        cgroup_parent: CgroupParent | None,
    ) -> None:
        super().__init__(policy)
        self._program = program
        self._cgroup_parent = cgroup_parent
        self._seccomp_filter = Memfd(bubblewrap_filter(platform.machine()))
        self._generated_files = [Memfd(file.content) for file in policy.generated_files]
        self._spawners = SpawnWorkerPool(self._restrict_thread, None, _UNLIMITED)

    def start_world(self, policy: SandboxPolicy, stdin: int) -> SandboxedProcess:
        """Start bubblewrap."""
        # The environment of a command could make bubblewrap load a library of the workspace.
        return SandboxedProcess.start(
            self._program,
            lambda fds: bwrap_options(policy, fds),
            starter_argv(),
            env={},
            sinks=(OutputCollector(cap_bytes=_ERROR_BYTES),),
            files=(self._seccomp_filter, *self._generated_files),
            limiter=CommandLimiter(_UNLIMITED, None, self._spawners),
            stdin=stdin,
        )

    def make_limits(self, policy: SandboxPolicy) -> WorkerLimits:
        """Return the limits of one command."""
        return WorkerLimits(policy.limits, self._cgroup_parent)

    def describe(self) -> SandboxDescription:
        """Return the protections of the sandbox and their limits."""
        missing = () if self._cgroup_parent else (NO_CGROUPS,)
        return SandboxDescription(name="bubblewrap", covered=_COVERED, not_covered=(*_NOT_COVERED, *missing))

    def close(self) -> None:
        """End all commands and background processes."""
        super().close()
        self._spawners.close()

    def _restrict_thread(self) -> None:
        # Loads libc through ctypes, which is not needed before the first command.
        from agent.backends.sandbox.landlock.kernel import restrict_scope

        # Children of a restricted thread cannot gain privileges, which a setuid bubblewrap needs.
        if not self._program.stat().st_mode & stat.S_ISUID:
            restrict_scope()


def starter_argv() -> tuple[str, ...]:
    """Return the command line of the starter: the interpreter of this program, without its virtual environment."""
    return (relay_interpreter(), "-I", "-S", str(STARTER))
