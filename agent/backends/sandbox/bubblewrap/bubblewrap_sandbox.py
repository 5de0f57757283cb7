"""The Linux sandbox: runs the commands of a run in bubblewrap."""

import contextlib
import errno
import os
import platform
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agent.backends.egress.relay import relay_interpreter
from agent.backends.process.output_capture import OutputCollector
from agent.backends.sandbox.bubblewrap.argv import STARTER, bwrap_argv
from agent.backends.sandbox.bubblewrap.sandboxed_process import Memfd, SandboxedProcess
from agent.backends.sandbox.bubblewrap.world import World
from agent.backends.sandbox.bubblewrap.world_command import WorldCommand
from agent.backends.sandbox.cgroup import CgroupParent
from agent.backends.sandbox.process_limits import CommandLimiter, SpawnWorkerPool, WorkerLimits
from agent.backends.sandbox.seccomp import bubblewrap_filter
from agent.backends.sandbox.types import ResourceLimits, SandboxDescription, SandboxPolicy, check_request
from tooling.contract.command import CommandRequest

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

BECAME_A_LINK = "has become a link, so the sandbox cannot be started safely"
NO_CGROUPS = "the total memory of a command, and for root its number of processes: no control groups are available"


class BubblewrapSandbox:
    """Runs all commands in one sandbox, which is started again only if its policy changes or it has ended."""

    def __init__(
        self,
        policy: SandboxPolicy,
        *,
        program: Path,
        cgroup_parent: CgroupParent | None,
    ) -> None:
        self.policy = policy
        self._program = program
        self._cgroup_parent = cgroup_parent
        self._seccomp_filter = Memfd(bubblewrap_filter(platform.machine()))
        self._generated_files = [Memfd(file.content) for file in policy.generated_files]
        self._spawners = SpawnWorkerPool(self._restrict_thread, None, _UNLIMITED)
        self._world: World | None = None
        self._retired_worlds: list[World] = []

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> WorldCommand:
        """Start a command. Raises OSError if it cannot be started in this sandbox."""
        policy = refresh_policy(self.policy)
        env = policy.build_environment(request.env)
        check_request(request, policy, env.get("PATH", os.defpath))
        world = self._get_world(policy)
        return world.start_command(
            request.argv,
            env,
            request.cwd,
            sinks,
            keeps_processes=request.may_leave_processes,
            wait_for=world.open_relay(policy.relay, env) if policy.relay else None,
        )

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs in it, not even in the background."""
        return all(world.is_idle for world in (*self._retired_worlds, self._world) if world is not None)

    async def stop(self) -> None:
        """End all commands and background processes, and wait for their end."""
        worlds = self._take_worlds()
        for world in worlds:
            with contextlib.suppress(OSError):
                await world.stop()

    def _get_world(self, policy: SandboxPolicy) -> World:
        """Return the sandbox with these mounts. One with other mounts ends with its commands."""
        mounts = _mounts_of(policy)
        if self._world is None or not self._world.is_usable(mounts):
            if self._world is not None:
                self._retire(self._world)
            self._world = None
            self._world = World(
                mounts,
                lambda stdin: self._start(mounts, stdin),
                lambda: WorkerLimits(policy.limits, self._cgroup_parent),
            )
        return self._world

    def _retire(self, world: World) -> None:
        if world.is_idle:
            world.close()
        else:
            self._retired_worlds.append(world)

    def _take_worlds(self) -> list[World]:
        worlds = [*self._retired_worlds, *([self._world] if self._world else [])]
        self._world, self._retired_worlds = None, []
        return worlds

    def _start(self, policy: SandboxPolicy, stdin: int) -> SandboxedProcess:
        # The environment of a command could make bubblewrap load a library of the workspace.
        return SandboxedProcess.start(
            lambda fds: bwrap_argv(policy, starter_argv(), program=self._program, fds=fds),
            env={},
            sinks=(OutputCollector(cap_bytes=_ERROR_BYTES),),
            files=(self._seccomp_filter, *self._generated_files),
            limiter=CommandLimiter(_UNLIMITED, None, self._spawners),
            stdin=stdin,
        )

    def describe(self) -> SandboxDescription:
        """Return what the sandbox protects and what it does not."""
        missing = () if self._cgroup_parent else (NO_CGROUPS,)
        return SandboxDescription(name="bubblewrap", covered=_COVERED, not_covered=(*_NOT_COVERED, *missing))

    def close(self) -> None:
        """End all commands and background processes."""
        for world in self._take_worlds():
            world.close()
        self._spawners.close()

    def _restrict_thread(self) -> None:
        # Loads libc through ctypes, which is not needed before the first command.
        from agent.backends.sandbox.landlock.kernel import restrict_scope

        # Children of a restricted thread cannot gain privileges, which a setuid bubblewrap needs.
        if not self._program.stat().st_mode & stat.S_ISUID:
            restrict_scope()


def refresh_policy(policy: SandboxPolicy) -> SandboxPolicy:
    """Drop paths that the user has removed since the start. Raises PermissionError for one that became a link.

    Commands can do neither, because in the sandbox these paths are mount points.
    """
    return replace(
        policy,
        pinned=tuple(filter(_still_exists, policy.pinned)),
        protected=tuple(filter(_still_exists, policy.protected)),
        hidden_folders=tuple(filter(_still_exists, policy.hidden_folders)),
        hidden_files=tuple(filter(_still_exists, policy.hidden_files)),
    )


def _still_exists(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(mode):
        raise PermissionError(errno.EPERM, BECAME_A_LINK, str(path))
    return True


def starter_argv() -> tuple[str, ...]:
    """Return the command line of the starter: the interpreter of this program, without its virtual environment."""
    return (relay_interpreter(), "-I", "-S", str(STARTER))


def _mounts_of(policy: SandboxPolicy) -> SandboxPolicy:
    """Return what cannot change while the sandbox runs."""
    is_in_folder = policy.proxy_socket is not None and policy.proxy_socket.parent == policy.proxy_dir
    socket = None if is_in_folder else policy.proxy_socket
    return replace(policy, proxy_socket=socket, proxy_env={}, relay=(), environment={})
