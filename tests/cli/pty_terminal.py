"""The program in a real pseudo-terminal."""

import os

import pexpect

from tests.cli.terminal_user import User


class PtyTerminal:
    """Starts the program in a pty, waits for its output and types."""

    def __init__(self, user: User, *words: str, columns: int = 200) -> None:
        program, *arguments = user.command(*words)
        environment = user.environment(TERM="xterm-256color", NO_COLOR="1")
        self._child = pexpect.spawn(
            program,
            arguments,
            env=environment,
            cwd=str(user.home),
            encoding="utf-8",
            codec_errors="replace",
            timeout=120,
            dimensions=(40, columns),
        )

    def wait_for(self, text: str) -> str:
        self._child.expect_exact(text)
        return str(self._child.before)

    def send_line(self, text: str) -> None:
        self._child.sendline(text)

    def send_bytes(self, data: bytes) -> None:
        os.write(self._child.child_fd, data)

    def wait_exit(self) -> tuple[int, str]:
        self._child.expect(pexpect.EOF)
        self._child.close()
        code = self._child.exitstatus
        return (128 + self._child.signalstatus if code is None else code), str(self._child.before)
