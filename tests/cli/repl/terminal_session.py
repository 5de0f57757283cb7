"""A program in a pty with an emulated screen: types keys and waits for output."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pexpect
import pyte

from agent.backends.sandbox.bubblewrap.argv import STARTER
from cli.repl.start import QUIT_HINT
from tests.cli.terminal_user import User

# Only guards against hanging.
TIMEOUT_S = 60.0
ENTER, TAB, ESC, UP = "\r", "\t", "\x1b", "\x1b[A"


OpenTerminal = Callable[..., "TerminalSession"]


def ctrl(letter: str) -> str:
    return chr(ord(letter.upper()) - 64)


class TerminalSession:
    """The REPL, or another program, in a pty; failed waits report the complete screen."""

    def __init__(
        self,
        user: User,
        *words: str,
        program: Sequence[str] = (),
        model: str = "",
        columns: int = 80,
        rows: int = 24,
        **environ: str,
    ) -> None:
        command, *arguments = program or user.command(*words)
        more = {"TERM": "xterm-256color", "NO_COLOR": "1", "LANG": "C.UTF-8", **environ}
        self.user = user
        self.folder: Path = user.home / "project"
        # A terminal that reports no size is treated as 80x24.
        self._screen = pyte.HistoryScreen(columns or 80, rows or 24, history=20_000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self.raw_output = b""
        self.child = pexpect.spawn(
            command,
            arguments,
            env=user.environment(**({"AGENT_MODEL": model} if model else {}), **more),
            cwd=str(self.folder),
            timeout=TIMEOUT_S,
            dimensions=(rows, columns),
        )

    def send(self, text: str) -> None:
        self.child.send(text)

    def send_line(self, line: str) -> None:
        """Type a line, wait until it is on the screen, and press Enter."""
        self.send(line)
        self.wait_for(line.splitlines()[-1][-30:])
        self.send(ENTER)

    def wait_for(self, text: str) -> str:
        """Wait until a text is on the screen or in the scrollback; return both."""
        return self.wait_until(lambda: text in self.full_text(), f"{text!r} to appear")

    def wait_ready(self) -> None:
        """Wait for the greeting of the REPL."""
        self.wait_for(QUIT_HINT)

    def wait_in_window(self, text: str) -> str:
        """Wait until a text is in the window: what is drawn around it may come in a later frame."""
        return self.wait_until(lambda: text in self.window_text(), f"{text!r} in the window")

    def wait_gone(self, text: str) -> str:
        """Wait until a text is no longer in the window."""
        return self.wait_until(lambda: text not in self.window_text(), f"{text!r} to go away")

    def wait_until(self, condition: Callable[[], bool], what: str) -> str:
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, f"waited for {what}; the screen:\n{self.full_text()}"
            assert self._read() or condition(), (
                f"the program ended while waiting for {what}; the screen:\n{self.full_text()}"
            )
        return self.full_text()

    def pause(self) -> str:
        """Read output for longer than a card must be visible before keys answer it; return the window."""
        self.watch(0.7)
        return self.window_text()

    def read(self) -> None:
        """Read the output available now."""
        self._read()

    def wait_stable(self) -> str:
        """Wait until the screen stops changing; return scrollback and window."""
        before = ""
        while before != (now := self.full_text()):
            before = now
            self.watch(0.25)
        return now

    def watch(self, seconds: float) -> None:
        """Read output for a while."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._read()

    def resize(self, columns: int, rows: int) -> None:
        self.child.setwinsize(rows, columns)
        self._screen.resize(rows, columns)

    def window_text(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def full_text(self) -> str:
        width = self._screen.columns
        above = ["".join(line[column].data for column in range(width)).rstrip() for line in self._screen.history.top]
        return "\n".join([*above, self.window_text()])

    def wait_process_end(self) -> str:
        """Wait until the program has ended while its terminal is still open; return scrollback and window."""
        deadline = time.monotonic() + TIMEOUT_S
        while is_alive(self.child.pid):
            assert time.monotonic() < deadline, f"waited for the end; the screen:\n{self.full_text()}"
            self._read()
        self._read()
        return self.full_text()

    def wait_exit(self) -> int:
        """Wait until the program has exited; return its exit code."""
        deadline = time.monotonic() + TIMEOUT_S
        while self._read():
            assert time.monotonic() < deadline, f"waited for the end; the screen:\n{self.full_text()}"
        self.child.wait()
        self.child.close()
        code = self.child.exitstatus
        return code if isinstance(code, int) else 128 + int(self.child.signalstatus or 0)

    def close(self) -> None:
        if self.child.closed:
            return
        try:
            self.child.close(force=True)
        except pexpect.ExceptionPexpect:
            # It was killed; on a busy machine its end takes longer than pexpect waits.
            os.waitpid(self.child.pid, 0)

    def _read(self) -> bool:
        try:
            data: bytes = self.child.read_nonblocking(65536, timeout=0.05)
        except pexpect.TIMEOUT:
            return True
        except (pexpect.EOF, OSError):
            return False
        self.raw_output += data
        self._stream.feed(data)
        return True


def child_processes(pid: int, *, with_own: bool = False) -> list[int]:
    """Return all descendants of a process, without its watchdog and its sandbox, which live as long as the program."""
    return [child for child in _descendants(pid) if with_own or not _is_own(command_line_of(child))]


def _is_own(line: str) -> bool:
    return line.startswith("windlass") or str(STARTER) in line


def command_line_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def _descendants(pid: int) -> list[int]:
    children: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            children += [int(entry.name), *_descendants(int(entry.name))]
    return children


def wait_gone(pids: list[int]) -> bool:
    """Wait until processes are gone, or are zombies; return False if one is still alive after the timeout."""
    deadline = time.monotonic() + TIMEOUT_S
    while (left := list(filter(is_alive, pids))) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not left


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
