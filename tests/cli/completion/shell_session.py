"""An interactive shell in a pty with completion installed."""

from pathlib import Path

import pexpect
import pyte

from tests.cli.repl.terminal_session import TAB, TIMEOUT_S, TerminalSession
from tests.cli.terminal_user import User
from tests.house.program import AGENT

_COMMANDS = {"bash": ("bash", "-i"), "zsh": ("zsh", "-i"), "fish": ("fish", "-i")}
_PROMPT = "here> "
_START_FILES = {
    ".bashrc": f"PS1='{_PROMPT}'\nbind 'set bell-style none'\n",
    ".zshrc": f"PS1='{_PROMPT}'\nunsetopt beep\nzstyle ':completion:*' menu no\n",
    ".config/fish/config.fish": f"function fish_prompt; echo -n '{_PROMPT}'; end\nset -g fish_greeting\n",
}


class ShellSession(TerminalSession):
    """A shell in a pty that loads the user's start files."""

    def __init__(self, user: User, shell: str, *, columns: int = 120, rows: int = 40, **environ: str) -> None:
        program, *arguments = _COMMANDS[shell]
        # bash lists candidates at the second Tab, the others at the first.
        self.list_keys = TAB * 2 if shell == "bash" else TAB
        self.user = user
        self.folder = user.home
        self._screen = pyte.HistoryScreen(columns, rows, history=1000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self.raw_output = b""
        path = f"{AGENT.parent}:/usr/local/bin:/usr/bin:/bin"
        self.child = pexpect.spawn(
            program,
            arguments,
            env=user.environment(PATH=path, TERM="xterm-256color", LANG="C.UTF-8", **environ),
            cwd=str(user.home),
            timeout=TIMEOUT_S,
            dimensions=(rows, columns),
        )
        self.wait_for(_PROMPT.rstrip())

    def typed_line(self) -> str:
        """Return the text after the last prompt."""
        prompt = _PROMPT.rstrip()
        typed = [line for line in self.window_text().splitlines() if line.startswith(prompt)]
        return typed[-1].removeprefix(prompt).lstrip() if typed else ""


def write_start_files(user: User) -> None:
    """Write start files with a plain prompt and no bell."""
    for name, text in _START_FILES.items():
        path = user.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def create_files(user: User, *names: str) -> None:
    for name in names:
        path: Path = user.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
