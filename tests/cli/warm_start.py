"""Runs the program in a process of its own that has its imports behind it; see `warm_program`."""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# An interpreter reads these when it starts, so programs share a starter only where they agree on them.
READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "TZ")


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """A command line of the program and all it is started with."""

    words: Sequence[str]
    environ: Mapping[str, str]
    cwd: Path
    stdin: bytes | None

    def message(self) -> bytes:
        return json.dumps({"words": self.words, "environ": self.environ, "cwd": str(self.cwd)}).encode()

    def starter(self) -> socket.socket:
        """Return where to send it."""
        return _starter(tuple(item for item in self.environ.items() if item[0].startswith(READ_AT_START)))


def run_warm(order: Invocation, timeout: float) -> subprocess.CompletedProcess[bytes]:
    """Do what `subprocess.run` would, with a program that is forked and not started from nothing."""
    (out, stdout), (err, stderr), (told, report) = (os.pipe() for _ in range(3))
    stdin, feed = (os.open(os.devnull, os.O_RDONLY), None) if order.stdin is None else os.pipe()
    theirs = [stdin, stdout, stderr, report]
    socket.send_fds(order.starter(), [order.message()], theirs)
    for fd in theirs:
        os.close(fd)
    with ThreadPoolExecutor(4) as pool, os.fdopen(told, "rb") as reports:
        if feed is not None:
            pool.submit(_feed, feed, order.stdin)
        output, errors = pool.submit(_read, out), pool.submit(_read, err)
        pid = int(reports.readline())
        try:
            code = pool.submit(reports.readline).result(timeout)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(order.words, int(code), output.result(), errors.result())


@cache
def _starter(environ: tuple[tuple[str, str], ...]) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cli.warm_program", str(theirs.fileno())],
        env=dict(environ),
        # As in the programs: a stream finds out at its beginning whether it can seek.
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[theirs.fileno()],
    )
    theirs.close()
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def _feed(fd: int, text: bytes | None) -> None:
    with os.fdopen(fd, "wb") as pipe:
        pipe.write(text or b"")


def _read(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as pipe:
        return pipe.read()
