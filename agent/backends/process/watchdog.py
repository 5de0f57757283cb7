"""A small process that kills the running commands if this process is killed."""

import contextlib
import functools
import os
import sys

MARKER = "WINDLASS_CALL"
_SHELL = "/bin/sh"
_BUSY, _IDLE = b"1\n", b"0\n"
# End of input means that the watched process has ended. A sandbox that is just being started may hide its marker for a
# moment, and processes may fork while they are being killed, so there are several scans.
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
    """Marks the commands of one process, and informs its watchdog process whether any is running."""

    def __init__(self, pid: int) -> None:
        # A process id alone may also be that of a process in a container, or of an earlier one.
        self._name = f"{pid}-{os.urandom(4).hex()}"
        self._running = 0
        self._last_number = 0
        self._pipe = _spawn_watchdog(f"{MARKER}={self._name}-")

    def add_command(self) -> str:
        """Return the marker of a command that is about to start."""
        self._last_number += 1
        self._running += 1
        if self._running == 1:
            self._send(_BUSY)
        return f"{self._name}-{self._last_number}"

    def remove_command(self) -> None:
        """Record that no process of a command is left."""
        self._running -= 1
        if not self._running:
            self._send(_IDLE)

    def _send(self, line: bytes) -> None:
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                os.write(self._pipe, line)


def get_watchdog() -> Watchdog:
    """Return the watchdog of this process."""
    return _watchdog_for(os.getpid())


_watchdog_for = functools.cache(Watchdog)


def _spawn_watchdog(marker: str) -> int | None:
    """Start the watchdog process and return a pipe to it; only Linux shows the environment of other processes."""
    if sys.platform != "linux":
        return None
    stdin, pipe = os.pipe2(os.O_CLOEXEC)
    try:
        os.posix_spawn(
            _SHELL,
            ("windlass-keeper", "-c", _SCRIPT, "windlass-keeper", marker),
            # Without a marker: it must not be killed with a command that this process belongs to.
            {},
            file_actions=(
                (os.POSIX_SPAWN_DUP2, stdin, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ),
            setsid=True,
        )
    finally:
        os.close(stdin)
    return pipe
