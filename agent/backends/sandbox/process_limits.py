"""The limits of one command: a control group where there can be one, and limits on every process in any case."""

import asyncio
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator

from agent.backends.process.spawn_thread import Popen, SpawnThread, Start
from agent.backends.sandbox.cgroup import Cgroup, CgroupParent
from agent.backends.sandbox.types import GIB, ResourceLimits

# How much of the machine's memory one command may take.
_MEMORY_SHARE = 0.75


def default_limits() -> ResourceLimits:
    """Return the usual limits, with memory cut to what this machine has."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    usual = ResourceLimits()
    most = max(int(physical * _MEMORY_SHARE), GIB)
    return ResourceLimits(memory_bytes=min(usual.memory_bytes or most, most))


def limit_process(pid: int, limits: ResourceLimits, *, has_memory_group: bool, processes_of_others: int = 0) -> None:
    """Set the limits of a process; those of a whole tree are for control groups. Raises OSError.

    `processes_of_others` is added where the kernel counts all processes of the user and not only those of the box.
    """
    for kind, value in _rlimits(limits, has_memory_group=has_memory_group, others=processes_of_others):
        _, hard = resource.prlimit(pid, kind)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.prlimit(pid, kind, (allowed, allowed))


def _rlimits(limits: ResourceLimits, *, has_memory_group: bool, others: int) -> Iterator[tuple[int, int]]:
    yield resource.RLIMIT_CORE, 0
    if limits.file_bytes is not None:
        yield resource.RLIMIT_FSIZE, limits.file_bytes
    if limits.open_files is not None:
        yield resource.RLIMIT_NOFILE, limits.open_files
    if limits.cpu_s is not None:
        yield resource.RLIMIT_CPU, limits.cpu_s
    if limits.processes is not None:
        yield resource.RLIMIT_NPROC, limits.processes + others
    if limits.memory_bytes is not None and not has_memory_group:
        # Not the address space: interpreters with a collector reserve far more of it than they use.
        yield resource.RLIMIT_DATA, limits.memory_bytes


_TRIES = 20
_MAX_KILLS = 200
_POLL_S = 0.01
_REMOVE_POLL_S = 0.002


class SpawnWorker:
    """A thread that starts commands one after the other, each in the same group: they are born with its limits."""

    def __init__(self, prepare: Callable[[], None], place: CgroupParent | None, limits: ResourceLimits) -> None:
        self._prepare = prepare
        self._cgroup_parent = place if place is not None and place.is_per_thread else None
        self._limits = limits
        self._thread = SpawnThread(self._prepare_thread)
        self.cgroup: Cgroup | None = None

    def spawn(self, start: Start) -> Popen:
        """Start a process from the thread."""
        return self._thread(start)

    def close(self) -> None:
        """End the thread and remove its group."""
        self._thread.close()
        # A thread under Landlock cannot remove it itself, and the kernel lets a thread go a little after its end.
        for _ in range(_TRIES):
            if self.cgroup is None or self.cgroup.remove():
                return
            time.sleep(_REMOVE_POLL_S)

    def _prepare_thread(self) -> Callable[[], None] | None:
        leave = None
        if self._cgroup_parent is not None:
            try:
                group = self._cgroup_parent.create_cgroup(self._limits)
                group.add_thread(threading.get_native_id())
                self.cgroup, leave = group, group.release_thread
            except OSError:
                # Groups that may not be used: the limits on processes are then all there is.
                self.cgroup = None
        self._prepare()
        return leave


class CommandLimiter:
    """Made before a command starts, put on its first process, released after its end."""

    def __init__(
        self,
        limits: ResourceLimits,
        place: CgroupParent | None,
        seats: "SpawnWorkerPool",
        *,
        processes_of_others: int = 0,
    ) -> None:
        self._limits = limits
        self._others = processes_of_others
        self._cgroup_parent = place
        self._pool = seats
        self._worker = seats.acquire()
        self._cgroup: Cgroup | None = None

    @property
    def has_own_cgroup(self) -> bool:
        """Say whether a group was made for this command alone, which must be empty before it can be removed."""
        return self._cgroup is not None

    def spawn(self, start: Start) -> Popen:
        """Start the command's process."""
        return self._worker.spawn(start)

    def apply(self, pid: int) -> None:
        """Bind a process that has not started anything yet. Raises OSError."""
        group = self._worker.cgroup or self._join_own_cgroup(pid)
        has_memory_group = (
            group is not None and self._cgroup_parent is not None and self._cgroup_parent.memory is not None
        )
        limit_process(pid, self._limits, has_memory_group=has_memory_group, processes_of_others=self._others)

    async def kill(self) -> bool:
        """Kill everything in the group until it is empty; say whether it is, so that nobody can have got away."""
        group = self._worker.cgroup or self._cgroup
        if group is None:
            return False
        for _ in range(_MAX_KILLS):
            group.kill()
            if group.is_empty:
                return True
            await asyncio.sleep(_POLL_S)
        return False

    def discard(self) -> None:
        """Let go of a command that never started."""
        self._pool.release(self._worker)

    async def release(self) -> None:
        """Make room for the next command; a group that stays is cleared by a later run."""
        self._pool.release(self._worker)
        if self._cgroup is None or self._cgroup.remove():
            return
        self._cgroup.kill()
        for _ in range(_TRIES):
            await asyncio.sleep(_POLL_S)
            if self._cgroup.remove():
                return

    def _join_own_cgroup(self, pid: int) -> Cgroup | None:
        if self._cgroup_parent is None or self._cgroup_parent.is_per_thread:
            return None
        try:
            group = self._cgroup_parent.create_cgroup(self._limits)
        except OSError:
            return None
        try:
            group.add_process(pid)
        except OSError:
            group.remove()
            return None
        self._cgroup = group
        return group


class SpawnWorkerPool:
    """As many threads as there are commands at the same time, each used again."""

    def __init__(self, prepare: Callable[[], None], place: CgroupParent | None, limits: ResourceLimits) -> None:
        self._prepare = prepare
        self._cgroup_parent = place
        self._limits = limits
        self._idle: list[SpawnWorker] = []
        self._all: list[SpawnWorker] = []

    def acquire(self) -> SpawnWorker:
        """Return a seat that nobody else has."""
        if self._idle:
            return self._idle.pop()
        seat = SpawnWorker(self._prepare, self._cgroup_parent, self._limits)
        self._all.append(seat)
        return seat

    def release(self, seat: SpawnWorker) -> None:
        """Give a seat back; its last command has ended."""
        if seat not in self._idle:
            self._idle.append(seat)

    def close(self) -> None:
        """End all threads, and with them what still runs."""
        for seat in self._all:
            seat.close()
        self._idle.clear()
        self._all.clear()
