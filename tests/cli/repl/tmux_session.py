"""The REPL in tmux, a terminal that rewraps lines when its window becomes narrower, as most terminals do."""

import os
import shlex
import subprocess
import time

from cli.repl.start import QUIT_HINT
from tests.cli.repl.terminal_session import TIMEOUT_S
from tests.cli.terminal_user import User


class TmuxSession:
    """The REPL in a window of a separate tmux server."""

    def __init__(self, user: User, *, model: str, columns: int, rows: int) -> None:
        # Server names are global on the machine, and tests of parallel workers have folders of the same name.
        self._server = ["tmux", "-L", f"windlass-{os.getpid()}-{user.home.parent.name}", "-f", "/dev/null"]
        environ = user.environment(AGENT_MODEL=model, NO_COLOR="1", LANG="C.UTF-8")
        variables = [f"{name}={value}" for name, value in environ.items()]
        program = shlex.join(["env", "-u", "TMUX", "env", *variables, "TMUX=here", *user.command()])
        inside = f"cd {shlex.quote(str(user.home / 'project'))}; {program}; echo ended with $?; sleep 60"
        self._tmux("new-session", "-d", "-s", "t", "-x", str(columns), "-y", str(rows), inside)

    def send(self, text: str) -> None:
        self._tmux("send-keys", "-t", "t", "-l", text)

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", "-t", "t", *keys)

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-t", "t", "-x", str(columns), "-y", str(rows))

    def full_text(self) -> str:
        """Return scrollback and window, with wrapped lines joined."""
        shown = self._tmux("capture-pane", "-p", "-J", "-t", "t", "-S", "-5000")
        # The cell of a drawn cursor is a blank.
        return "\n".join(line.rstrip() for line in shown.splitlines()).rstrip()

    def wait_for(self, text: str, *, times: int = 1) -> str:
        deadline = time.monotonic() + TIMEOUT_S
        while (shown := self.full_text()).count(text) < times:
            assert time.monotonic() < deadline, f"waited for {text!r}; the screen:\n{shown}"
            time.sleep(0.03)
        return shown

    def wait_ready(self) -> None:
        self.wait_for(QUIT_HINT)

    def query(self, what: str) -> str:
        """Return a tmux format, such as a flag of the terminal."""
        return self._tmux("display-message", "-p", "-t", "t", what).strip()

    def close(self) -> None:
        subprocess.run([*self._server, "kill-server"], check=False, capture_output=True)

    def _tmux(self, *words: str) -> str:
        return subprocess.run([*self._server, *words], check=True, capture_output=True, timeout=120).stdout.decode()
