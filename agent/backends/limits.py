"""Limits on a single process and what it starts, set from outside before it has started anything."""

import os
import resource
from collections.abc import Iterator

from agent.backends.confinement import GIB, Limits

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
