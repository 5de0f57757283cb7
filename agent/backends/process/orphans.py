"""Finds processes that left their group: by the mark of the command that started them, or by their parents."""

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

_PROC = Path("/proc")
# A tree that forks while it is being killed needs more than one look.
_MAX_SCANS = 20


def kill_orphans(*, session: int, mark: str, only_younger: bool = False) -> int:
    """Kill what belongs to the session or carries the mark, until a look finds nothing; return how many died.

    `only_younger` looks at processes with numbers given out since the session began: enough after a short command.
    """
    killed = 0
    for _ in range(_MAX_SCANS):
        found = _stop_matching(session, mark.encode(), only_younger=only_younger)
        if not found:
            break
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed


def descendants(pid: int) -> list[int]:
    """Return the numbers of everything below a process, as far as the kernel tells."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = [child for parent in waiting for child in _children(parent)]
        found += children
        waiting = children
    return found


def is_childless(pid: int) -> bool:
    """Say whether the kernel tells that a process of one thread has no child, not even a dead one."""
    try:
        return not (_PROC / str(pid) / "task" / str(pid) / "children").read_bytes()
    except OSError:
        return False


def _children(pid: int) -> list[int]:
    try:
        texts = [path.read_text() for path in (_PROC / str(pid) / "task").glob("*/children")]
    except OSError:
        return []
    return [int(word) for text in texts for word in text.split()]


def _stop_matching(session: int, mark: bytes, *, only_younger: bool) -> set[int]:
    """Stop everything that belongs, and look again until nothing new has come: what stands still forks no more."""
    found: set[int] = set()
    for _ in range(_MAX_SCANS):
        pids = filter(_started_after(session), _list_pids()) if only_younger else _list_pids()
        new = {pid for pid in pids if pid not in found and _matches(pid, session, mark)}
        if not new:
            break
        for pid in new:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP)
        found |= new
    return found


def _started_after(first: int) -> Callable[[int], bool]:
    """Return whether a number was given out after another: they go up, and from the highest start again."""
    try:
        last = int((_PROC / "sys/kernel/ns_last_pid").read_text())
    except (OSError, ValueError):
        return lambda _: True
    if last >= first:
        return lambda pid: first <= pid <= last
    return lambda pid: pid >= first or pid <= last


def _list_pids() -> list[int]:
    own = os.getpid()
    try:
        with os.scandir(_PROC) as entries:
            return [int(entry.name) for entry in entries if entry.name.isdigit() and int(entry.name) != own]
    except OSError:
        # No /proc on this system: the group kill is all there is.
        return []


def _matches(pid: int, session: int, mark: bytes) -> bool:
    try:
        # The name in parentheses may hold anything, so fields are counted from its end: state, ppid, pgrp, session.
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):
            return False
        if int(fields[3]) == session:
            return True
        return mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except (OSError, IndexError):
        return False
