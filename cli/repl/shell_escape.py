"""`!command`: runs a command in the user's shell and captures its output for the next request."""

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
    """Runs commands on a pty relayed to the user's terminal; blocks the calling thread."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._pid = 0

    def run(self, command: str) -> tuple[int, str]:
        """Run a command; return its exit code, 128+N after signal N, and the end of its output."""
        shell = self._environ.get("SHELL") or "/bin/sh"
        pid, terminal = pty.fork()
        if pid == 0:
            with suppress(OSError):
                os.execle(shell, shell, "-c", command, dict(self._environ))
            os._exit(127)
        self._pid = pid
        captured = CapturedOutput()
        try:
            with _raw_mode(sys.stdin.fileno()):
                _relay(pid, terminal, captured)
                _write(sys.stdout.fileno(), captured.reset_sequence())
        finally:
            os.close(terminal)
            status = _reap(pid)
            self._pid = 0
        output = decode_output(bytes(captured.tail)).replace("\r\n", "\n")
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code, sanitize_output(output)

    def terminate(self) -> None:
        """Hang up the running command, as closing its terminal would."""
        if self._pid:
            with suppress(OSError):
                os.killpg(self._pid, signal.SIGHUP)


def _relay(pid: int, terminal: int, captured: CapturedOutput) -> None:
    """Relay keys and output until the command exits or either terminal is closed."""
    keyboard, size = sys.stdin.fileno(), b""
    presses: deque[float] = deque(maxlen=_MAX_CTRL_C)
    while True:
        # Polled: SIGWINCH would only reach the main thread.
        if (now := _window_size(keyboard)) != size:
            size = now
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
        ready, _, _ = select.select([terminal, keyboard], [], [], _POLL_S)
        if not ready and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            # Background processes may keep the pty open; do not wait for them.
            return
        try:
            if terminal in ready:
                if not (data := os.read(terminal, 65536)):
                    return
                captured.feed(data)
                _write(sys.stdout.fileno(), data)
            if keyboard in ready:
                if not (typed := os.read(keyboard, 4096)):
                    return
                _write(terminal, typed)
                if _should_give_up(typed, terminal, presses):
                    return
        except OSError:
            # On Linux reading from a closed pty is EIO, not end of file.
            return


def _should_give_up(typed: bytes, terminal: int, presses: deque[float]) -> bool:
    """Whether Ctrl-C was pressed repeatedly without effect."""
    if not termios.tcgetattr(terminal)[3] & termios.ISIG:
        # The program reads the key itself, as editors do.
        return False
    presses.extend([time.monotonic()] * typed.count(_CTRL_C))
    return len(presses) == _MAX_CTRL_C and presses[-1] - presses[0] < _TIMEOUT_S


def _reap(pid: int) -> int:
    """Return the wait status of a process whose pty was closed; kill it if it ignores the hangup."""
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
