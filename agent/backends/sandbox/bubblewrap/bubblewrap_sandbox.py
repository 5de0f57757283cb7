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
from agent.backends.sandbox.bubblewrap.prewarmed import Spare, build_spare
from agent.backends.sandbox.bubblewrap.sandboxed_process import BoxProcess, KeptFile
from agent.backends.sandbox.cgroup import GroupPlace
from agent.backends.sandbox.process_limits import Bounds, Seats
from agent.backends.sandbox.seccomp import box_filter
from agent.backends.sandbox.types import Confinement, Description, check_request
from tooling.contract.command import CommandRequest

_LOADER = ("LD_", "GLIBC_", "GCONV_", "MALLOC_")

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

NO_GROUPS = "memory of a whole tree, and its processes when run by root: there are no control groups to use here"


class BubblewrapBox:
    """Starts commands in boxes made from one confinement."""

    def __init__(
        self,
        confinement: Confinement,
        *,
        program: Path,
        group_place: GroupPlace | None,
    ) -> None:
        self.confinement = confinement
        self._program = program
        self._group_place = group_place
        self._filter = KeptFile(box_filter(platform.machine()))
        self._documents = [KeptFile(document.content) for document in confinement.documents]
        self._seats = Seats(self._lock_thread, group_place, confinement.limits)
        self._spare: Spare | None = None
        self._leaving: set[asyncio.Future[None]] = set()

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> BoxProcess:
        """Start a command. Raises OSError when it cannot be started in this box."""
        confinement = as_it_stands(self.confinement)
        env = confinement.environment_with(request.env)
        check_request(request, confinement, env.get("PATH", os.defpath))
        if self._spare is not None and self._spare.fits(request, confinement):
            spare, self._spare = self._spare, None
            return spare.give(request, sinks[0])
        return self._start(confinement, request.argv, request.cwd, env, sinks)

    def prepare(self, cwd: Path) -> None:
        """Build a box ahead for the next command in this folder; when that fails, the command will say why."""
        confinement = as_it_stands(self.confinement)
        if self._spare is not None:
            if self._spare.is_for(confinement):
                return
            leaving = asyncio.ensure_future(_discarded(self._spare))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
            self._spare = None

        def start(argv: Sequence[str], sinks: Sequence[OutputCollector], stdin: int) -> BoxProcess:
            env = confinement.environment_with({})
            return self._start(confinement, argv, cwd, env, sinks, stdin)

        with contextlib.suppress(OSError):
            self._spare = build_spare(start, confinement, cwd)

    async def discard_spare(self) -> None:
        """End the box that was built ahead, and wait for the end of those before it."""
        spare, self._spare = self._spare, None
        if spare is not None:
            await _discarded(spare)
        if self._leaving:
            await asyncio.wait(self._leaving)

    def _start(
        self,
        confinement: Confinement,
        argv: Sequence[str],
        cwd: Path,
        env: dict[str, str],
        sinks: Sequence[OutputCollector],
        stdin: int = subprocess.DEVNULL,
    ) -> BoxProcess:
        # Bubblewrap itself runs outside: what tells its loader where to look could name a library of the workspace.
        inner = {name: env.pop(name) for name in sorted(env) if name.startswith(_LOADER)}
        return BoxProcess.start(
            lambda descriptors: bwrap_argv(
                confinement, argv, cwd, program=self._program, descriptors=descriptors, setenv=inner
            ),
            env=env,
            sinks=sinks,
            files=(self._filter, *self._documents),
            bounds=Bounds(confinement.limits, self._group_place, self._seats),
            stdin=stdin,
        )

    def describe(self) -> Description:
        """Return what the box covers and what it does not."""
        lacking = () if self._group_place else (NO_GROUPS,)
        return Description(name="bubblewrap", covered=_COVERED, not_covered=(*_NOT_COVERED, *lacking))

    def close(self) -> None:
        """End what still runs."""
        self._seats.close()

    def _lock_thread(self) -> None:
        # The C library loads with the first command, in the thread that needs it.
        from agent.backends.sandbox.landlock.kernel import restrict_scope

        # What a restricted thread starts cannot gain privileges, and a bubblewrap of this kind lives by that.
        if not self._program.stat().st_mode & stat.S_ISUID:
            restrict_scope()


def as_it_stands(confinement: Confinement) -> Confinement:
    """Leave out what a person has removed since the start; refuse what has become a link, and might lead anywhere.

    Commands can do neither: in every box these are mount points.
    """
    return replace(
        confinement,
        pinned=tuple(filter(_stands, confinement.pinned)),
        protected=tuple(filter(_stands, confinement.protected)),
        hidden_folders=tuple(filter(_stands, confinement.hidden_folders)),
        hidden_files=tuple(filter(_stands, confinement.hidden_files)),
    )


def _stands(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(mode):
        raise PermissionError(errno.EPERM, "has become a link, so no box can be made safely", str(path))
    return True


async def _discarded(spare: Spare) -> None:
    with contextlib.suppress(OSError):
        await spare.discard()
