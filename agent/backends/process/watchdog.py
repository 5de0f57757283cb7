"""A small process that outlives this one for a moment: when this one is killed outright, it ends what was running."""

import contextlib
import functools
import os
import sys

MARKER = "WINDLASS_CALL"
_SHELL = "/bin/sh"
_BUSY, _IDLE = b"1\n", b"0\n"
# Silence is the end of the process that it keeps. A box that is just being built may hide its mark for a moment, and a
# tree may grow while it is ended, so there are several looks.
_SCRIPT = r"""
cd /
busy=0
while read -r word; do busy=$word; done
[ "$busy" = 1 ] || exit
for pause in 0 0 0.1 0.1 0.2 0.4 0.8 1.6 0; do
  for file in $(grep -lsF "$1" /proc/[0-9]*/environ); do
    pid=${file#/proc/}
    kill -9 "${pid%/environ}"
  done
  sleep $pause
done
"""


class Watchdog:
    """Knows the commands of one process by their marks, and whether any is running."""

    def __init__(self, pid: int) -> None:
        # A number alone may be that of another process: in a container, or in the past.
        self._name = f"{pid}-{os.urandom(4).hex()}"
        self._running = 0
        self._last_number = 0
        self._pipe = _spawn_watchdog(f"{MARKER}={self._name}-")

    def add_command(self) -> str:
        """Return the mark of a command that is about to start."""
        self._last_number += 1
        self._running += 1
        if self._running == 1:
            self._send(_BUSY)
        return f"{self._name}-{self._last_number}"

    def remove_command(self) -> None:
        """Note that nothing is left of a command."""
        self._running -= 1
        if not self._running:
            self._send(_IDLE)

    def _send(self, word: bytes) -> None:
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                os.write(self._pipe, word)


def get_watchdog() -> Watchdog:
    """Return the keeper of this process."""
    return _watchdog_for(os.getpid())


_watchdog_for = functools.cache(Watchdog)


def _spawn_watchdog(mark: str) -> int | None:
    """Start the process and return the line to it; elsewhere than on Linux it would not find a mark."""
    if sys.platform != "linux":
        return None
    listening, line = os.pipe2(os.O_CLOEXEC)
    try:
        os.posix_spawn(
            _SHELL,
            ("windlass-keeper", "-c", _SCRIPT, "windlass-keeper", mark),
            # Without a mark of its own: it goes on when the command that this process is part of is ended.
            {},
            file_actions=(
                (os.POSIX_SPAWN_DUP2, listening, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ),
            setsid=True,
        )
    finally:
        os.close(listening)
    return line
