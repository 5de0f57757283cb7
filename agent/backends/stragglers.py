"""Finds and kills processes that left their group but still carry the mark of the command that started them."""

import contextlib
import os
import signal
from pathlib import Path

_PROC = Path("/proc")
# A tree that forks while it is being killed needs more than one look.
_LOOKS = 20


def kill_stragglers(*, session: int, mark: str) -> int:
    """Kill what belongs to the session or carries the mark, until a look finds nothing; return how many died."""
    killed = 0
    for _ in range(_LOOKS):
        found = [pid for pid in _processes() if _belongs(pid, session, mark.encode())]
        if not found:
            break
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed


def _processes() -> list[int]:
    own = os.getpid()
    try:
        with os.scandir(_PROC) as entries:
            return [int(entry.name) for entry in entries if entry.name.isdigit() and int(entry.name) != own]
    except OSError:
        # No /proc on this system: the group kill is all there is.
        return []


def _belongs(pid: int, session: int, mark: bytes) -> bool:
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
