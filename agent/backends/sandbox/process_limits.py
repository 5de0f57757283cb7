"""The limits of one command: a control group where there can be one, and limits on every process in any case."""

import asyncio
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator

from agent.backends.process.spawn_thread import Popen, Spawner, Start
from agent.backends.sandbox.cgroup import Group, GroupPlace
from agent.backends.sandbox.types import GIB, Limits

# How much of the machine's memory one command may take.
_SHARE = 0.75


def limits_of_machine() -> Limits:
    """Return the usual limits, with memory cut to what this machine has."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    usual = Limits()
    most = max(int(physical * _SHARE), GIB)
    return Limits(memory_bytes=min(usual.memory_bytes or most, most))


def limit_process(pid: int, limits: Limits, *, has_memory_group: bool, processes_of_others: int = 0) -> None:
    """Set the limits of a process; those of a whole tree are for control groups. Raises OSError.

    `processes_of_others` is added where the kernel counts all processes of the user and not only those of the box.
    """
    for kind, value in _values(limits, has_memory_group=has_memory_group, others=processes_of_others):
        _, hard = resource.prlimit(pid, kind)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.prlimit(pid, kind, (allowed, allowed))


def _values(limits: Limits, *, has_memory_group: bool, others: int) -> Iterator[tuple[int, int]]:
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
_LOOKS = 200
_WAIT_S = 0.01
_MOMENT_S = 0.002


class Seat:
    """A thread that starts commands one after the other, each in the same group: they are born with its limits."""

    def __init__(self, prepare: Callable[[], None], place: GroupPlace | None, limits: Limits) -> None:
        self._prepare = prepare
        self._place = place if place is not None and place.is_per_thread else None
        self._limits = limits
        self._spawner = Spawner(self._sit_down)
        self.group: Group | None = None

    def spawn(self, start: Start) -> Popen:
        """Start a process from the thread."""
        return self._spawner(start)

    def close(self) -> None:
        """End the thread and remove its group."""
        self._spawner.close()
        # A thread under Landlock cannot remove it itself, and the kernel lets a thread go a little after its end.
        for _ in range(_TRIES):
            if self.group is None or self.group.remove():
                return
            time.sleep(_MOMENT_S)

    def _sit_down(self) -> Callable[[], None] | None:
        leave = None
        if self._place is not None:
            try:
                group = self._place.new_group(self._limits)
                group.join_thread(threading.get_native_id())
                self.group, leave = group, group.leave_thread
            except OSError:
                # Groups that may not be used: the limits on processes are then all there is.
                self.group = None
        self._prepare()
        return leave


class Bounds:
    """Made before a command starts, put on its first process, released after its end."""

    def __init__(
        self, limits: Limits, place: GroupPlace | None, seats: "Seats", *, processes_of_others: int = 0
    ) -> None:
        self._limits = limits
        self._others = processes_of_others
        self._place = place
        self._seats = seats
        self._seat = seats.take()
        self._group: Group | None = None

    @property
    def has_own_group(self) -> bool:
        """Say whether a group was made for this command alone, which must be empty before it can be removed."""
        return self._group is not None

    def spawn(self, start: Start) -> Popen:
        """Start the command's process."""
        return self._seat.spawn(start)

    def put_on(self, pid: int) -> None:
        """Bind a process that has not started anything yet. Raises OSError."""
        group = self._seat.group or self._joined(pid)
        has_memory_group = group is not None and self._place is not None and self._place.memory is not None
        limit_process(pid, self._limits, has_memory_group=has_memory_group, processes_of_others=self._others)

    async def kill(self) -> bool:
        """Kill everything in the group until it is empty; say whether it is, so that nobody can have got away."""
        group = self._seat.group or self._group
        if group is None:
            return False
        for _ in range(_LOOKS):
            group.kill()
            if group.is_empty:
                return True
            await asyncio.sleep(_WAIT_S)
        return False

    def discard(self) -> None:
        """Let go of a command that never started."""
        self._seats.leave(self._seat)

    async def release(self) -> None:
        """Make room for the next command; a group that stays is cleared by a later run."""
        self._seats.leave(self._seat)
        if self._group is None or self._group.remove():
            return
        self._group.kill()
        for _ in range(_TRIES):
            await asyncio.sleep(_WAIT_S)
            if self._group.remove():
                return

    def _joined(self, pid: int) -> Group | None:
        if self._place is None or self._place.is_per_thread:
            return None
        try:
            group = self._place.new_group(self._limits)
        except OSError:
            return None
        try:
            group.join(pid)
        except OSError:
            group.remove()
            return None
        self._group = group
        return group


class Seats:
    """As many threads as there are commands at the same time, each used again."""

    def __init__(self, prepare: Callable[[], None], place: GroupPlace | None, limits: Limits) -> None:
        self._prepare = prepare
        self._place = place
        self._limits = limits
        self._idle: list[Seat] = []
        self._all: list[Seat] = []

    def take(self) -> Seat:
        """Return a seat that nobody else has."""
        if self._idle:
            return self._idle.pop()
        seat = Seat(self._prepare, self._place, self._limits)
        self._all.append(seat)
        return seat

    def leave(self, seat: Seat) -> None:
        """Give a seat back; its last command has ended."""
        if seat not in self._idle:
            self._idle.append(seat)

    def close(self) -> None:
        """End all threads, and with them what still runs."""
        for seat in self._all:
            seat.close()
        self._idle.clear()
        self._all.clear()
