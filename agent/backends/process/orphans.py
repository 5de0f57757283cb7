"""Finds processes that left their process group, by session, by the marker in their environment, or by parent."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

from tooling.contract.command import BackgroundProcess

_PROC = Path("/proc")
# Processes that fork while they are being killed need more than one scan.
_MAX_SCANS = 20


def kill_orphans(*, session: int, marker: str, only_younger: bool = False) -> int:
    """Kill processes of the session or with the marker until a scan finds none; return how many were killed.

    `only_younger` scans only process ids allocated since the session started, which suffices after a short command.
    """
    # A process that is still dying is found again by the next scan.
    killed: set[int] = set()
    for _ in range(_MAX_SCANS):
        found = _stop_matching(session, marker.encode(), only_younger=only_younger)
        if not found:
            break
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
    return len(killed)


def descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of a process that the kernel lists."""
    found: list[int] = []
    parents = [pid]
    while parents:
        parents = [child for parent in parents for child in _children(parent)]
        found += parents
    return found


def kill_descendants(pid: int) -> None:
    """Kill all descendants of a process, which are stopped first, because a stopped process cannot fork.

    Those that are being created meanwhile need another call.
    """
    found: set[int] = set()
    for _ in range(_MAX_SCANS):
        new = set(descendants(pid)) - found
        if not new:
            break
        _signal_all(new, signal.SIGSTOP)
        found |= new
    _signal_all(found, signal.SIGKILL)


def find_background(pids: Iterable[int]) -> tuple[BackgroundProcess, ...]:
    """Return those processes that have not ended, with their ids in the innermost namespace."""
    found = (_read_background(pid) for pid in pids)
    return tuple(process for process in found if process is not None)


def _read_background(pid: int) -> BackgroundProcess | None:
    folder = _PROC / str(pid)
    try:
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
        words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    if status["State"].split()[0] in "ZX":
        return None
    inner = int(status.get("NSpid", str(pid)).split()[-1])
    return BackgroundProcess(pid=inner, command=" ".join(words).strip() or status["Name"].strip())


def _signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        threads = list((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return []
    for thread in threads:
        # A thread that is just ending has none.
        with contextlib.suppress(OSError):
            found += map(int, (thread / "children").read_text().split())
    return found


def _stop_matching(session: int, marker: bytes, *, only_younger: bool) -> set[int]:
    """Stop all matching processes, and scan until there are no new ones: a stopped process cannot fork."""
    found: set[int] = set()
    for _ in range(_MAX_SCANS):
        pids = filter(_started_after(session), list_pids()) if only_younger else list_pids()
        new = {pid for pid in pids if pid not in found and _matches(pid, session, marker)}
        if not new:
            break
        _signal_all(new, signal.SIGSTOP)
        found |= new
    return found


def _started_after(first: int) -> Callable[[int], bool]:
    """Return a filter for process ids allocated since the given one; they increase and then wrap around."""
    try:
        last = int((_PROC / "sys/kernel/ns_last_pid").read_text())
    except (OSError, ValueError):
        return lambda _: True
    if last >= first:
        return lambda pid: first <= pid <= last
    return lambda pid: pid >= first or pid <= last


def list_pids() -> list[int]:
    """Return the ids of all processes but this one."""
    own = os.getpid()
    try:
        with os.scandir(_PROC) as entries:
            return [int(entry.name) for entry in entries if entry.name.isdigit() and int(entry.name) != own]
    except OSError:
        # There is no /proc: killing the process group has to suffice.
        return []


def _matches(pid: int, session: int, marker: bytes) -> bool:
    try:
        # The name in parentheses may contain anything, so fields are counted after it: state, ppid, pgrp, session.
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):
            return False
        if int(fields[3]) == session:
            return True
        return marker in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except (OSError, IndexError):
        return False
