"""A control group for each command, where this user may make some: memory and processes of a whole tree together."""

import contextlib
import itertools
import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path

from agent.backends.sandbox.types import Limits
from tooling.contract.fast_dataclass import dataclass

MOUNT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
_PREFIX = "windlass-"
# A group that is being emptied cannot be removed at once.
_TRIES = 20

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One command's group; under the older layout it is a folder for each kind of limit."""

    folders: tuple[Path, ...]

    def join(self, pid: int) -> None:
        """Move a process in; what it starts from now on is in as well. Raises OSError."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(pid))

    def join_thread(self, number: int) -> None:
        """Move one thread in; only the older layout lets threads be somewhere else than their process."""
        for folder in self.folders:
            (folder / "tasks").write_text(str(number))

    def leave_thread(self) -> None:
        """Move the calling thread back up and remove the group, when nobody else is in it."""
        with contextlib.suppress(OSError):
            for folder in self.folders:
                (folder.parent / "tasks").write_text(str(threading.get_native_id()))
            self.remove()

    def kill(self) -> None:
        """Kill everything in the group but ourselves."""
        for folder in self.folders:
            try:
                (folder / "cgroup.kill").write_text("1")
            except OSError:
                _kill_members(folder)

    @property
    def is_empty(self) -> bool:
        """Say whether nobody but ourselves is in the group any more."""
        return not any(_members(folder) for folder in self.folders)

    def remove(self) -> bool:
        """Remove the group, or say that somebody is still in it."""
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
class GroupPlace:
    """Where groups can be made: one folder for each kind of limit, or twice the same.

    `is_per_thread` is the older layout. There the thread that starts commands can be in a group of its own and they
    are born in it; to move a started process takes as long as to build a whole box.
    """

    memory: Path | None
    processes: Path | None
    memory_file: str
    is_per_thread: bool
    most_memory: int | None = None

    def new_group(self, limits: Limits) -> Group:
        """Make a group with its limits set. Raises OSError, and then nothing is left behind."""
        name = f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
        parents = [place for place in dict.fromkeys((self.memory, self.processes)) if place is not None]
        group = Group(folders=tuple(parent / name for parent in parents))
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
        allowed = limit if self.most_memory is None else min(limit, self.most_memory)
        (folder / self.memory_file).write_text(str(allowed))
        for swap, amount in (("memory.swap.max", "0"), ("memory.memsw.limit_in_bytes", str(allowed))):
            # Without swap in the kernel the file is missing.
            if (folder / swap).exists():
                (folder / swap).write_text(amount)


def find_group_place(*, mount: Path = MOUNT, own: Path = OWN) -> GroupPlace | None:
    """Return where groups can be made, in the newer layout or the older one, or None; clears what dead runs left."""
    place = _unified(mount, _own_groups(own)) or _split(mount, _own_groups(own))
    for folder in {place.memory, place.processes} - {None} if place else ():
        assert folder is not None
        _clear(folder)
    return place


def _unified(mount: Path, own: Mapping[str, str]) -> GroupPlace | None:
    """The newer layout: a group next to our own, because a group with processes in it can have no limited children."""
    if not (mount / "cgroup.controllers").exists():
        return None
    current = mount / own.get("", "/").lstrip("/")
    for parent in (current.parent, current):
        if not parent.is_relative_to(mount):
            continue
        offered = _words(parent / "cgroup.subtree_control")
        memory = parent if "memory" in offered else None
        processes = parent if "pids" in offered else None
        if (memory or processes) and _may_make(parent):
            return GroupPlace(memory=memory, processes=processes, memory_file="memory.max", is_per_thread=False)
    return None


def _split(mount: Path, own: Mapping[str, str]) -> GroupPlace | None:
    """The older layout: groups at the top, where no other program's groups are touched, within our own limit."""
    memory, processes = mount / "memory", mount / "pids"
    has_memory = (memory / "memory.limit_in_bytes").exists() and _may_make(memory)
    has_processes = (processes / "cgroup.procs").exists() and _may_make(processes)
    if not has_memory and not has_processes:
        return None
    limit = _words(memory / own.get("memory", "/").lstrip("/") / "memory.limit_in_bytes")
    return GroupPlace(
        memory=memory if has_memory else None,
        processes=processes if has_processes else None,
        memory_file="memory.limit_in_bytes",
        is_per_thread=True,
        most_memory=int(limit[0]) if limit and limit[0].isdigit() else None,
    )


def _own_groups(path: Path) -> dict[str, str]:
    """Read our own groups by kind of limit; the newer layout has an empty kind."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    found: dict[str, str] = {}
    for line in lines:
        _, kinds, place = line.split(":", 2)
        found |= dict.fromkeys(kinds.split(","), place)
    return found


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _may_make(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK) and os.access(folder / "cgroup.procs", os.W_OK)


def _clear(folder: Path) -> None:
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
    return {int(word) for word in _words(folder / "cgroup.procs") if word.isdigit()} - {0, os.getpid()}
