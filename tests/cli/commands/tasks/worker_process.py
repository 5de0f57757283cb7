"""A real `agent worker` in the background of a test."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.cli.terminal_user import User

LIMIT_S = 120


@contextmanager
def run_worker(user: User, *flags: str, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """Start a worker; at the end it is killed, if it has not ended."""
    worker = subprocess.Popen(
        user.command("worker", *flags),
        env=user.environment(**environ),
        cwd=user.home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield worker
    finally:
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(LIMIT_S)
        if worker.stderr:
            worker.stderr.close()


def wait_for_line(worker: "subprocess.Popen[str]", text: str) -> None:
    """Read what a worker says until a line contains a text."""
    assert worker.stderr
    # Ends a worker that says nothing more, and with it the reading.
    timer = threading.Timer(LIMIT_S, worker.kill)
    timer.start()
    try:
        assert any(text in line for line in worker.stderr), f"the worker has not said {text!r}"
    finally:
        timer.cancel()


def until(condition: Callable[[], object]) -> object:
    """Wait until a condition is true, and return it."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")
