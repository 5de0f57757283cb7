"""Control groups, which limit the memory and number of all processes of a command together."""

import contextlib
import itertools
import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path

from agent.backends.sandbox.types import ResourceLimits
from tooling.contract.fast_dataclass import dataclass

MOUNT = Path("/sys/fs/cgroup")
OWN_CGROUP_FILE = Path("/proc/self/cgroup")
_PREFIX = "windlass-"
# A group that was just emptied cannot be removed immediately.
_TRIES = 20

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cgroup:
    """The group of one command; in version 1 it has a folder for each controller."""

    folders: tuple[Path, ...]

    def add_process(self, pid: int) -> None:
        """Add a process; its later children belong to the group too. Raises OSError."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(pid))

    def add_thread(self, tid: int) -> None:
        """Add one thread; only version 1 allows this for a single thread of a process."""
        for folder in self.folders:
            (folder / "tasks").write_text(str(tid))

    def release_thread(self) -> None:
        """Move the calling thread to the parent group, and remove this group if it is empty."""
        with contextlib.suppress(OSError):
            for folder in self.folders:
                (folder.parent / "tasks").write_text(str(threading.get_native_id()))
            self.remove()

    def kill(self) -> None:
        """Kill all processes of the group except this one."""
        for folder in self.folders:
            try:
                (folder / "cgroup.kill").write_text("1")
            except OSError:
                _kill_members(folder)

    @property
    def is_empty(self) -> bool:
        """Whether no process but this one is in the group."""
        return not any(_members(folder) for folder in self.folders)

    def remove(self) -> bool:
        """Remove the group; return False if it still has processes."""
        is_gone = True
        for folder in self.folders:
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                is_gone = False
        return is_gone


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupParent:
    """Parent of new groups: a folder for each controller, the same for all in version 2.

    `is_per_thread` means version 1. There, the thread that starts commands can have its own group, which they inherit;
    moving a started process would take as long as starting a sandbox.
    """

    memory: Path | None
    processes: Path | None
    memory_file: str
    is_per_thread: bool
    max_memory: int | None = None

    def create_cgroup(self, limits: ResourceLimits) -> Cgroup:
        """Create a group with these limits. Raises OSError, leaving nothing behind."""
        name = f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
        parents = [folder for folder in dict.fromkeys((self.memory, self.processes)) if folder is not None]
        group = Cgroup(folders=tuple(parent / name for parent in parents))
        try:
            for folder in group.folders:
                folder.mkdir()
            if self.memory is not None and limits.memory_bytes is not None:
                self._limit_memory(self.memory / name, limits.memory_bytes)
            if self.processes is not None and limits.processes is not None:
                (self.processes / name / "pids.max").write_text(str(limits.processes))
        except OSError:
            group.remove()
            raise
        return group

    def _limit_memory(self, folder: Path, limit: int) -> None:
        allowed = limit if self.max_memory is None else min(limit, self.max_memory)
        (folder / self.memory_file).write_text(str(allowed))
        for swap, amount in (("memory.swap.max", "0"), ("memory.memsw.limit_in_bytes", str(allowed))):
            # The file is missing if the kernel has no swap accounting.
            if (folder / swap).exists():
                (folder / swap).write_text(amount)


def find_cgroup_parent(*, mount: Path = MOUNT, own: Path = OWN_CGROUP_FILE) -> CgroupParent | None:
    """Return the parent for new groups, or None; removes groups of dead processes."""
    parent = _find_v2(mount, _read_own_cgroups(own)) or _find_v1(mount, _read_own_cgroups(own))
    for folder in {parent.memory, parent.processes} - {None} if parent else ():
        assert folder is not None
        _remove_stale(folder)
    return parent


def _find_v2(mount: Path, own: Mapping[str, str]) -> CgroupParent | None:
    """Version 2: a sibling of our own group, because a group that has processes cannot have limited children."""
    if not (mount / "cgroup.controllers").exists():
        return None
    current = mount / own.get("", "/").lstrip("/")
    for parent in (current.parent, current):
        if not parent.is_relative_to(mount):
            continue
        offered = _read_words(parent / "cgroup.subtree_control")
        memory = parent if "memory" in offered else None
        processes = parent if "pids" in offered else None
        if (memory or processes) and _can_create_in(parent):
            return CgroupParent(memory=memory, processes=processes, memory_file="memory.max", is_per_thread=False)
    return None


def _find_v1(mount: Path, own: Mapping[str, str]) -> CgroupParent | None:
    """Version 1: groups at the top level, where they affect no other program, within the limit of our own."""
    memory, processes = mount / "memory", mount / "pids"
    has_memory = (memory / "memory.limit_in_bytes").exists() and _can_create_in(memory)
    has_processes = (processes / "cgroup.procs").exists() and _can_create_in(processes)
    if not has_memory and not has_processes:
        return None
    limit = _read_words(memory / own.get("memory", "/").lstrip("/") / "memory.limit_in_bytes")
    return CgroupParent(
        memory=memory if has_memory else None,
        processes=processes if has_processes else None,
        memory_file="memory.limit_in_bytes",
        is_per_thread=True,
        max_memory=int(limit[0]) if limit and limit[0].isdigit() else None,
    )


def _read_own_cgroups(path: Path) -> dict[str, str]:
    """Return our own groups by controller; that of version 2 has an empty name."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    found: dict[str, str] = {}
    for line in lines:
        _, controllers, group = line.split(":", 2)
        found |= dict.fromkeys(controllers.split(","), group)
    return found


def _read_words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _can_create_in(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK) and os.access(folder / "cgroup.procs", os.W_OK)


def _remove_stale(folder: Path) -> None:
    for group in folder.glob(f"{_PREFIX}*"):
        pid = group.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            with contextlib.suppress(OSError):
                group.rmdir()


def _kill_members(folder: Path) -> None:
    for _ in range(_TRIES):
        members = _members(folder)
        if not members:
            return
        for pid in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _members(folder: Path) -> set[int]:
    return {int(word) for word in _read_words(folder / "cgroup.procs") if word.isdigit()} - {0, os.getpid()}
