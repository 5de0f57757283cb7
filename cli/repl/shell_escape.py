"""`!command`: the person's own command in the person's own shell, its output kept in case the agent should see it."""

import fcntl
import os
import pty
import select
import signal
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from cli.repl.ui.frame_output import CapturedOutput
from tooling.output import decode_output, sanitize_output

_POLL_S = 0.2
_TIMEOUT_S = 1.0
_CTRL_C = b"\x03"
_MAX_CTRL_C = 3


class ShellEscape:
    """Runs commands on a terminal of their own, which is joined to the person's; in the thread that calls."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._pid = 0

    def run(self, command: str) -> tuple[int, str]:
        """Run a command to its end; return its exit code and what it wrote."""
        shell = self._environ.get("SHELL") or "/bin/sh"
        pid, terminal = pty.fork()
        if pid == 0:
            with suppress(OSError):
                os.execle(shell, shell, "-c", command, dict(self._environ))
            os._exit(127)
        self._pid = pid
        written = CapturedOutput()
        try:
            with _raw_mode(sys.stdin.fileno()):
                _relay(pid, terminal, written)
                _write(sys.stdout.fileno(), written.reset_sequence())
        finally:
            os.close(terminal)
            status = _reap(pid)
            self._pid = 0
        output = decode_output(bytes(written.tail)).replace("\r\n", "\n")
        return os.waitstatus_to_exitcode(status), sanitize_output(output)

    def terminate(self) -> None:
        """End a command that still runs, as a terminal that is closed does."""
        if self._pid:
            with suppress(OSError):
                os.killpg(self._pid, signal.SIGHUP)


def _relay(pid: int, terminal: int, written: CapturedOutput) -> None:
    """Hand keys in and output out until the command ends or either terminal is closed."""
    keyboard, size = sys.stdin.fileno(), b""
    presses: deque[float] = deque(maxlen=_MAX_CTRL_C)
    while True:
        # A signal that says so would reach the main thread only.
        if (now := _window_size(keyboard)) != size:
            size = now
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
        ready, _, _ = select.select([terminal, keyboard], [], [], _POLL_S)
        if not ready and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            # What it left running in the background has the terminal still; it is not waited for.
            return
        try:
            if terminal in ready:
                if not (data := os.read(terminal, 65536)):
                    return
                written.feed(data)
                _write(sys.stdout.fileno(), data)
            if keyboard in ready:
                if not (typed := os.read(keyboard, 4096)):
                    return
                _write(terminal, typed)
                if _should_give_up(typed, terminal, presses):
                    return
        except OSError:
            # On Linux a closed terminal is an error, not an end.
            return


def _should_give_up(typed: bytes, terminal: int, presses: deque[float]) -> bool:
    """Say whether Ctrl-C was pressed again and again, at a program that takes no notice of it."""
    if not termios.tcgetattr(terminal)[3] & termios.ISIG:
        # It reads the key itself, as an editor does.
        return False
    presses.extend([time.monotonic()] * typed.count(_CTRL_C))
    return len(presses) == _MAX_CTRL_C and presses[-1] - presses[0] < _TIMEOUT_S


def _reap(pid: int) -> int:
    """Return how a process ended whose terminal is closed; one that takes no notice of that is killed."""
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(_POLL_S / 10)
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _window_size(fd: int) -> bytes:
    return fcntl.ioctl(fd, termios.TIOCGWINSZ, bytes(8))


@contextmanager
def _raw_mode(fd: int) -> Iterator[None]:
    before = termios.tcgetattr(fd)
    tty.setraw(fd)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSADRAIN, before)
