"""Runs the program in a forked process that has already imported it; see `warm_program`."""

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

# Python reads these at startup, so programs can share a warm process only if they agree on them.
READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "TZ")


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """A command line with its environment, working folder and stdin."""

    words: Sequence[str]
    environ: Mapping[str, str]
    cwd: Path
    stdin: bytes | None

    def message(self) -> bytes:
        return json.dumps({"words": self.words, "environ": self.environ, "cwd": str(self.cwd)}).encode()

    def starter(self) -> socket.socket:
        """Return the socket of a warm process with a matching environment."""
        return _starter(tuple(item for item in self.environ.items() if item[0].startswith(READ_AT_START)))


def run_warm(invocation: Invocation, timeout: float) -> subprocess.CompletedProcess[bytes]:
    """Behave like `subprocess.run`, but fork the program from a warm process."""
    (out, stdout), (err, stderr), (status, report) = (os.pipe() for _ in range(3))
    stdin, feed = (os.open(os.devnull, os.O_RDONLY), None) if invocation.stdin is None else os.pipe()
    theirs = [stdin, stdout, stderr, report]
    socket.send_fds(invocation.starter(), [invocation.message()], theirs)
    for fd in theirs:
        os.close(fd)
    with ThreadPoolExecutor(4) as pool, os.fdopen(status, "rb") as reports:
        if feed is not None:
            pool.submit(_feed, feed, invocation.stdin)
        output, errors = pool.submit(_read, out), pool.submit(_read, err)
        pid = int(reports.readline())
        try:
            code = pool.submit(reports.readline).result(timeout)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(invocation.words, int(code), output.result(), errors.result())


@cache
def _starter(environ: tuple[tuple[str, str], ...]) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cli.warm_program", str(theirs.fileno())],
        env=dict(environ),
        # Pipes, as in the programs: a stream checks when it is opened whether it can seek.
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
