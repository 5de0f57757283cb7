"""The box where bubblewrap is missing: Landlock and seccomp on the thread that starts commands."""

import os
import platform
import weakref
from asyncio import Future
from collections.abc import Sequence
from pathlib import Path

from agent.backends.process.host_process import HostProcess
from agent.backends.process.output_capture import OutputCollector
from agent.backends.sandbox.bubblewrap.bubblewrap_sandbox import NO_GROUPS
from agent.backends.sandbox.cgroup import GroupPlace
from agent.backends.sandbox.process_limits import Bounds, Seats
from agent.backends.sandbox.seccomp import bare_filter
from agent.backends.sandbox.types import Confinement, Description, check_request
from agent.vocabulary.errors import SandboxError
from tooling.contract.command import CommandRequest
from tooling.files.temp_dir import TempDir

_DEVICES = tuple(map(Path, ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")))
# Facts about the machine that programs ask for; nothing about its processes.
_FACTS = tuple(Path("/proc", name) for name in ("cpuinfo", "meminfo", "stat", "filesystems", "version", "loadavg"))
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


class LandlockBox:
    """Starts commands from a bound thread; everything below it is bound as well."""

    def __init__(self, confinement: Confinement, *, group_place: GroupPlace | None) -> None:
        if confinement.hidden_folders or confinement.hidden_files:
            raise SandboxError(
                "the workspace holds private folders, which only bubblewrap can hide",
                hint="choose a narrower folder, or install bubblewrap",
            )
        self.confinement = confinement
        self._group_place = group_place
        self._program = bare_filter(platform.machine())
        self._temporary = TempDir()
        self._scratch = self._temporary.path
        weakref.finalize(self, self._temporary.remove)
        self._private = {"HOME": self._scratch / "home", "TMPDIR": self._scratch / "tmp"}
        for folder in self._private.values():
            folder.mkdir(mode=0o700)
        self._seats = Seats(self._bind_thread, group_place, confinement.limits)

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> "GatedProcess":
        """Start a command. Raises OSError when it cannot be started in this box."""
        private = {name: str(folder) for name, folder in self._private.items()}
        env = {**self.confinement.environment, **private, **request.env}
        check_request(request, self.confinement, env.get("PATH", os.defpath))
        bounds = Bounds(
            self.confinement.limits, self._group_place, self._seats, processes_of_others=_PROCESSES_OF_OTHERS
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

    def describe(self) -> Description:
        """Return what the box covers and what it does not."""
        lacking = () if self._group_place else (NO_GROUPS,)
        return Description(name="landlock", covered=_COVERED, not_covered=(*_NOT_COVERED, *lacking))

    def close(self) -> None:
        """Remove the private folders."""
        self._seats.close()
        self._temporary.remove()

    def _bind_thread(self) -> None:
        # The C library loads with the first command, in the thread that needs it.
        from agent.backends.sandbox.landlock.kernel import drop_capabilities, load_filter, restrict_files

        confinement = self.confinement
        settings = tuple(document.path for document in confinement.documents if document.path.name != "gitconfig")
        drop_capabilities()
        restrict_files(
            writable=(*confinement.writable, self._scratch, *_DEVICES),
            readable=(*confinement.readable, *confinement.toolchains, *settings, *_FACTS),
        )
        load_filter(self._program)


class GatedProcess:
    """A command of this box; its limits are on from its first moment."""

    def __init__(self, process: HostProcess, bounds: Bounds, gate: int) -> None:
        self._process = process
        self._bounds = bounds
        self._problem: OSError | None = None
        try:
            bounds.put_on(process.pid)
            os.write(gate, b"go\n")
        except OSError as problem:
            # Nobody answers at the gate, so the command ends before it began.
            self._problem = problem
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
            is_certain = await self._bounds.kill()
        finally:
            try:
                code = await self._process.finish(in_doubt=not is_certain)
            finally:
                await self._bounds.release()
        if self._problem is not None:
            raise OSError(f"the limits of the box could not be set: {self._problem}")
        return code
