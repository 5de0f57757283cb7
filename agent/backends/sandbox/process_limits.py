"""The limits of a command: a control group where possible, and rlimits on its processes."""

import asyncio
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator

from agent.backends.process.spawn_thread import Popen, SpawnThread, Start
from agent.backends.sandbox.cgroup import Cgroup, CgroupParent
from agent.backends.sandbox.types import GIB, ResourceLimits

# The share of the machine's memory that one command may use.
_MEMORY_SHARE = 0.75


def default_limits() -> ResourceLimits:
    """Return the default limits, with memory limited to that of this machine."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    available = max(int(physical * _MEMORY_SHARE), GIB)
    return ResourceLimits(memory_bytes=min(ResourceLimits().memory_bytes or available, available))


def limit_process(pid: int, limits: ResourceLimits, *, has_memory_group: bool, processes_of_others: int = 0) -> None:
    """Set the rlimits of a process; limits on all processes together need a control group. Raises OSError.

    `processes_of_others` is added where the kernel counts all processes of the user, not only those of the sandbox.
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
        # Not the address space: garbage-collected runtimes reserve far more of it than they use.
        yield resource.RLIMIT_DATA, limits.memory_bytes


_TRIES = 20
_MAX_KILLS = 200
_POLL_S = 0.01
_REMOVE_POLL_S = 0.002


class SpawnWorker:
    """A thread that starts one command after another; they inherit its control group, and so its limits."""

    def __init__(self, prepare: Callable[[], None], cgroup_parent: CgroupParent | None, limits: ResourceLimits) -> None:
        self._prepare = prepare
        is_usable = cgroup_parent is not None and cgroup_parent.is_per_thread
        self._cgroup_parent = cgroup_parent if is_usable else None
        self._limits = limits
        self._thread = SpawnThread(self._prepare_thread)
        self.cgroup: Cgroup | None = None

    def spawn(self, start: Start) -> Popen:
        """Start a process from the thread."""
        return self._thread(start)

    def close(self) -> None:
        """End the thread and remove its control group."""
        self._thread.close()
        # A thread under Landlock cannot remove the group itself, and is counted in it for a moment after its end.
        for _ in range(_TRIES):
            if self.cgroup is None or self.cgroup.remove():
                return
            time.sleep(_REMOVE_POLL_S)

    def _prepare_thread(self) -> Callable[[], None] | None:
        clean_up = None
        if self._cgroup_parent is not None:
            try:
                group = self._cgroup_parent.create_cgroup(self._limits)
                group.add_thread(threading.get_native_id())
                self.cgroup, clean_up = group, group.release_thread
            except OSError:
                # The groups cannot be used: only the rlimits remain.
                self.cgroup = None
        self._prepare()
        return clean_up


class CommandLimiter:
    """The limits of one command: created before it starts, applied to its first process, released after its end."""

    def __init__(
        self,
        limits: ResourceLimits,
        cgroup_parent: CgroupParent | None,
        pool: "SpawnWorkerPool",
        *,
        processes_of_others: int = 0,
    ) -> None:
        self._limits = limits
        self._others = processes_of_others
        self._cgroup_parent = cgroup_parent
        self._pool = pool
        self._worker = pool.acquire()
        self._cgroup: Cgroup | None = None

    @property
    def has_own_cgroup(self) -> bool:
        """Whether the command has its own control group, which must be empty before it can be removed."""
        return self._cgroup is not None

    def spawn(self, start: Start) -> Popen:
        """Start the process of the command."""
        return self._worker.spawn(start)

    def apply(self, pid: int) -> None:
        """Limit a process that has not started any other yet. Raises OSError."""
        group = self._worker.cgroup
        if group is None and self._cgroup_parent is not None and not self._cgroup_parent.is_per_thread:
            group = self._cgroup = _create_cgroup_for(pid, self._limits, self._cgroup_parent)
        has_memory_group = (
            group is not None and self._cgroup_parent is not None and self._cgroup_parent.memory is not None
        )
        limit_process(pid, self._limits, has_memory_group=has_memory_group, processes_of_others=self._others)

    async def kill(self) -> bool:
        """Kill the control group until it is empty; return whether it is, which means that no process escaped."""
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
        """Release the limits of a command that never started."""
        self._pool.release(self._worker)

    async def release(self) -> None:
        """Release the limits."""
        self._pool.release(self._worker)
        if self._cgroup is not None:
            await _remove_cgroup(self._cgroup)


def _create_cgroup_for(pid: int, limits: ResourceLimits, parent: CgroupParent) -> Cgroup | None:
    """Return a new control group with this process in it, or None if the groups cannot be used."""
    try:
        group = parent.create_cgroup(limits)
    except OSError:
        return None
    try:
        group.add_process(pid)
    except OSError:
        group.remove()
        return None
    return group


async def _remove_cgroup(group: Cgroup) -> None:
    """Remove a control group; one that cannot be removed is removed by a later run."""
    if group.remove():
        return
    group.kill()
    for _ in range(_TRIES):
        await asyncio.sleep(_POLL_S)
        if group.remove():
            return


class WorkerLimits:
    """The limits of a process that starts commands, which inherit them."""

    def __init__(self, limits: ResourceLimits, cgroup_parent: CgroupParent | None) -> None:
        self._limits = limits
        self._cgroup_parent = cgroup_parent
        self._cgroup: Cgroup | None = None

    def apply(self, pid: int) -> None:
        """Limit a process that has not started any other yet. Raises OSError."""
        parent = self._cgroup_parent
        self._cgroup = _create_cgroup_for(pid, self._limits, parent) if parent else None
        has_memory_group = self._cgroup is not None and parent is not None and parent.memory is not None
        limit_process(pid, self._limits, has_memory_group=has_memory_group)

    async def release(self) -> None:
        """Remove the control group, and kill its remaining processes."""
        if self._cgroup is not None:
            await _remove_cgroup(self._cgroup)
            self._cgroup = None

    def discard(self) -> None:
        """Remove the control group of processes that have been killed; they are counted for a moment longer."""
        for _ in range(_TRIES):
            if self._cgroup is None or self._cgroup.remove():
                return
            time.sleep(_REMOVE_POLL_S)


class SpawnWorkerPool:
    """Reusable spawn threads, one for each concurrent command."""

    def __init__(self, prepare: Callable[[], None], cgroup_parent: CgroupParent | None, limits: ResourceLimits) -> None:
        self._prepare = prepare
        self._cgroup_parent = cgroup_parent
        self._limits = limits
        self._idle: list[SpawnWorker] = []
        self._all: list[SpawnWorker] = []

    def acquire(self) -> SpawnWorker:
        """Return a worker that no other command uses."""
        if self._idle:
            return self._idle.pop()
        worker = SpawnWorker(self._prepare, self._cgroup_parent, self._limits)
        self._all.append(worker)
        return worker

    def release(self, worker: SpawnWorker) -> None:
        """Return a worker whose command has ended."""
        if worker not in self._idle:
            self._idle.append(worker)

    def close(self) -> None:
        """End all threads, and with them the sandboxes they started."""
        for worker in self._all:
            worker.close()
        self._idle.clear()
        self._all.clear()
