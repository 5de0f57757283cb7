"""The Linux sandbox: runs every command in bubblewrap."""

import asyncio
import contextlib
import errno
import os
import platform
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agent.backends.process.output_capture import OutputCollector
from agent.backends.sandbox.bubblewrap.argv import bwrap_argv
from agent.backends.sandbox.bubblewrap.prewarmed import PrewarmedSandbox, build_prewarmed
from agent.backends.sandbox.bubblewrap.sandboxed_process import Memfd, SandboxedProcess
from agent.backends.sandbox.cgroup import CgroupParent
from agent.backends.sandbox.process_limits import CommandLimiter, SpawnWorkerPool
from agent.backends.sandbox.seccomp import bubblewrap_filter
from agent.backends.sandbox.types import SandboxDescription, SandboxPolicy, check_request
from tooling.contract.command import CommandRequest

_LOADER_PREFIXES = ("LD_", "GLIBC_", "GCONV_", "MALLOC_")

_COVERED = (
    "writes: only the workspace and added folders, without .git/hooks and .git/config",
    "reads: the system, toolchains and those folders; not the home folder, /etc, /var, /run or other projects",
    "network: the sandbox's own loopback, and the proxy's socket when hosts are allowed",
    "own users, processes, shared memory and host name; no capabilities; about 60 system calls refused by seccomp",
    "a clean environment, no open files, no terminal; processes end with their command",
    "Landlock around the sandbox: no signals and no abstract sockets to the outside (kernel 6.12 or newer)",
)
# Why Landlock does not repeat the file rules inside: a thread under such rules cannot mount, so they cannot be set
# before bubblewrap has built the sandbox, and after that only a program between it and the command could set them.
# Starting an interpreter there takes more than twice as long as the sandbox, and this package has no compiled helper.
_NOT_COVERED = (
    "the file rules are enforced by bubblewrap alone; Landlock does not repeat them inside",
    "a repository that a command creates: its hooks and configuration are protected from the next run on",
    "programs of the workspace that you run later outside the sandbox",
    "the total size of files written to the workspace, as long as some disk space is left",
)

BECAME_A_LINK = "has become a link, so the sandbox cannot be started safely"
NO_CGROUPS = "the total memory of a command, and for root its number of processes: no control groups are available"


class BubblewrapSandbox:
    """Starts every command in a new sandbox with the same policy."""

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
        self._workers = SpawnWorkerPool(self._restrict_thread, cgroup_parent, policy.limits)
        self._prewarmed: PrewarmedSandbox | None = None
        self._discarding: set[asyncio.Future[None]] = set()

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> SandboxedProcess:
        """Start a command. Raises OSError if it cannot be started in this sandbox."""
        policy = refresh_policy(self.policy)
        env = policy.build_environment(request.env)
        check_request(request, policy, env.get("PATH", os.defpath))
        if self._prewarmed is not None and self._prewarmed.can_run(request, policy):
            prewarmed, self._prewarmed = self._prewarmed, None
            return prewarmed.start_command(request, sinks[0])
        return self._start(policy, request.argv, request.cwd, env, sinks)

    def prewarm(self, cwd: Path) -> None:
        """Start a sandbox ahead for the next command in this folder; a failure is left to that command to report."""
        policy = refresh_policy(self.policy)
        if self._prewarmed is not None:
            if self._prewarmed.is_current(policy):
                return
            discarding = asyncio.ensure_future(_discard(self._prewarmed))
            self._discarding.add(discarding)
            discarding.add_done_callback(self._discarding.discard)
            self._prewarmed = None

        def start(argv: Sequence[str], sinks: Sequence[OutputCollector], stdin: int) -> SandboxedProcess:
            env = policy.build_environment({})
            return self._start(policy, argv, cwd, env, sinks, stdin)

        with contextlib.suppress(OSError):
            self._prewarmed = build_prewarmed(start, policy, cwd)

    async def discard_prewarmed(self) -> None:
        """End the prewarmed sandbox, and wait for the end of earlier ones."""
        prewarmed, self._prewarmed = self._prewarmed, None
        if prewarmed is not None:
            await _discard(prewarmed)
        if self._discarding:
            await asyncio.wait(self._discarding)

    def _start(
        self,
        policy: SandboxPolicy,
        argv: Sequence[str],
        cwd: Path,
        env: dict[str, str],
        sinks: Sequence[OutputCollector],
        stdin: int = subprocess.DEVNULL,
    ) -> SandboxedProcess:
        # Bubblewrap itself runs outside, where loader variables could make it load a library of the workspace.
        inner = {name: env.pop(name) for name in sorted(env) if name.startswith(_LOADER_PREFIXES)}
        return SandboxedProcess.start(
            lambda fds: bwrap_argv(policy, argv, cwd, program=self._program, fds=fds, setenv=inner),
            env=env,
            sinks=sinks,
            files=(self._seccomp_filter, *self._generated_files),
            limiter=CommandLimiter(policy.limits, self._cgroup_parent, self._workers),
            stdin=stdin,
        )

    def describe(self) -> SandboxDescription:
        """Return what the sandbox protects and what it does not."""
        missing = () if self._cgroup_parent else (NO_CGROUPS,)
        return SandboxDescription(name="bubblewrap", covered=_COVERED, not_covered=(*_NOT_COVERED, *missing))

    def close(self) -> None:
        """End running commands."""
        self._workers.close()

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


async def _discard(prewarmed: PrewarmedSandbox) -> None:
    with contextlib.suppress(OSError):
        await prewarmed.discard()
