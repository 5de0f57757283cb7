"""The box of Linux: bubblewrap around every command."""

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
    "writes: only the workspace and folders added by hand, without .git/hooks and .git/config",
    "reads: the system, toolchains and those folders; not the home folder, /etc, /var, /run or other projects",
    "network: the box's own loopback, and the proxy's socket when hosts are allowed",
    "own users, processes, shared memory and host name; no capabilities; about 60 system calls refused by seccomp",
    "a clean environment, no open files, no terminal; whatever a command starts ends with it",
    "Landlock around the box: no signals and no nameless sockets to the outside (kernel 6.12 or newer)",
)
# Why Landlock does not repeat the file rules inside: a thread under such rules may not mount, so they cannot be put on
# before bubblewrap has built the box, and after that only a program between it and the command could do so. Starting
# an interpreter there costs more than twice the whole box, and a compiled helper cannot be part of this package.
_NOT_COVERED = (
    "the file rules are bubblewrap's alone: Landlock does not repeat them inside",
    "a repository that a command makes: its hooks and configuration are protected from the next run on",
    "what a person later runs from the workspace outside the box",
    "the total size of what is written to the workspace, beyond a floor of free disk space",
)

NO_CGROUPS = "memory of a whole tree, and its processes when run by root: there are no control groups to use here"


class BubblewrapSandbox:
    """Starts commands in boxes made from one confinement."""

    def __init__(
        self,
        policy: SandboxPolicy,
        *,
        program: Path,
        group_place: CgroupParent | None,
    ) -> None:
        self.policy = policy
        self._program = program
        self._cgroup_parent = group_place
        self._seccomp_filter = Memfd(bubblewrap_filter(platform.machine()))
        self._generated_files = [Memfd(document.content) for document in policy.generated_files]
        self._workers = SpawnWorkerPool(self._restrict_thread, group_place, policy.limits)
        self._prewarmed: PrewarmedSandbox | None = None
        self._discarding: set[asyncio.Future[None]] = set()

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> SandboxedProcess:
        """Start a command. Raises OSError when it cannot be started in this box."""
        confinement = refresh_policy(self.policy)
        env = confinement.build_environment(request.env)
        check_request(request, confinement, env.get("PATH", os.defpath))
        if self._prewarmed is not None and self._prewarmed.can_run(request, confinement):
            spare, self._prewarmed = self._prewarmed, None
            return spare.start_command(request, sinks[0])
        return self._start(confinement, request.argv, request.cwd, env, sinks)

    def prewarm(self, cwd: Path) -> None:
        """Build a box ahead for the next command in this folder; when that fails, the command will say why."""
        confinement = refresh_policy(self.policy)
        if self._prewarmed is not None:
            if self._prewarmed.is_current(confinement):
                return
            leaving = asyncio.ensure_future(_discard(self._prewarmed))
            self._discarding.add(leaving)
            leaving.add_done_callback(self._discarding.discard)
            self._prewarmed = None

        def start(argv: Sequence[str], sinks: Sequence[OutputCollector], stdin: int) -> SandboxedProcess:
            env = confinement.build_environment({})
            return self._start(confinement, argv, cwd, env, sinks, stdin)

        with contextlib.suppress(OSError):
            self._prewarmed = build_prewarmed(start, confinement, cwd)

    async def discard_prewarmed(self) -> None:
        """End the box that was built ahead, and wait for the end of those before it."""
        spare, self._prewarmed = self._prewarmed, None
        if spare is not None:
            await _discard(spare)
        if self._discarding:
            await asyncio.wait(self._discarding)

    def _start(
        self,
        confinement: SandboxPolicy,
        argv: Sequence[str],
        cwd: Path,
        env: dict[str, str],
        sinks: Sequence[OutputCollector],
        stdin: int = subprocess.DEVNULL,
    ) -> SandboxedProcess:
        # Bubblewrap itself runs outside: what tells its loader where to look could name a library of the workspace.
        inner = {name: env.pop(name) for name in sorted(env) if name.startswith(_LOADER_PREFIXES)}
        return SandboxedProcess.start(
            lambda descriptors: bwrap_argv(
                confinement, argv, cwd, program=self._program, descriptors=descriptors, setenv=inner
            ),
            env=env,
            sinks=sinks,
            files=(self._seccomp_filter, *self._generated_files),
            bounds=CommandLimiter(confinement.limits, self._cgroup_parent, self._workers),
            stdin=stdin,
        )

    def describe(self) -> SandboxDescription:
        """Return what the box covers and what it does not."""
        lacking = () if self._cgroup_parent else (NO_CGROUPS,)
        return SandboxDescription(name="bubblewrap", covered=_COVERED, not_covered=(*_NOT_COVERED, *lacking))

    def close(self) -> None:
        """End what still runs."""
        self._workers.close()

    def _restrict_thread(self) -> None:
        # The C library loads with the first command, in the thread that needs it.
        from agent.backends.sandbox.landlock.kernel import restrict_scope

        # What a restricted thread starts cannot gain privileges, and a bubblewrap of this kind lives by that.
        if not self._program.stat().st_mode & stat.S_ISUID:
            restrict_scope()


def refresh_policy(confinement: SandboxPolicy) -> SandboxPolicy:
    """Leave out what a person has removed since the start; refuse what has become a link, and might lead anywhere.

    Commands can do neither: in every box these are mount points.
    """
    return replace(
        confinement,
        pinned=tuple(filter(_still_exists, confinement.pinned)),
        protected=tuple(filter(_still_exists, confinement.protected)),
        hidden_folders=tuple(filter(_still_exists, confinement.hidden_folders)),
        hidden_files=tuple(filter(_still_exists, confinement.hidden_files)),
    )


def _still_exists(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(mode):
        raise PermissionError(errno.EPERM, "has become a link, so no box can be made safely", str(path))
    return True


async def _discard(spare: PrewarmedSandbox) -> None:
    with contextlib.suppress(OSError):
        await spare.discard()
