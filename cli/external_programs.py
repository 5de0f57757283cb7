"""Programs that temporarily own the terminal: agent commands, the pager, the editor."""

import contextlib
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from agent.vocabulary.errors import InputError
from agent.workspace.git_command import find_program
from tooling.files.temp_dir import TempDir
from tooling.output import decode_output

_EDITOR = "vi"
_PAGER = "less -R"
_EDITOR_HINT = "set VISUAL or EDITOR to your editor"

RunExternal = Callable[[Callable[[], None]], Awaitable[None]]


def editor_failed(editor: str) -> InputError:
    """Build the error for an editor that exited with an error."""
    return InputError(f"editor {editor!r} failed", _EDITOR_HINT)


class ExternalPrograms:
    """Runs one program at a time and blocks the calling thread; `terminate` may be called from another thread."""

    def __init__(self, environ: Mapping[str, str], cwd: Path) -> None:
        self._environ = environ
        self._cwd = cwd
        self._running: subprocess.Popen[bytes] | None = None

    def run_agent(self, *words: str, stdin: str | None = None) -> None:
        """Run `agent …`; use `stdin` for private text, since every user of the machine can list arguments."""
        # Without -P Python would import a `cli.py` from the working directory.
        self._run([sys.executable, "-P", "-m", "cli", *words], None if stdin is None else stdin.encode())

    def open_pager(self, text: str) -> None:
        """Show a text in the user's pager."""
        self._run(_split_command(self._environ.get("PAGER") or _PAGER), text.encode("utf-8", "replace"), LESS="-R")

    def edit(self, text: str, *, name: str = "request.md") -> str:
        """Open a text in the user's editor and return the result."""
        editor = self._environ.get("VISUAL") or self._environ.get("EDITOR") or _EDITOR
        with TempDir() as folder:
            path = folder / name
            path.write_text(text, "utf-8", "replace")
            if self._run([*_split_command(editor), str(path)]):
                raise editor_failed(editor)
            return decode_output(path.read_bytes()).removesuffix("\n")

    def terminate(self) -> None:
        """Terminate the running program, if any."""
        if running := self._running:
            running.terminate()

    def _run(self, words: Sequence[str], stdin: bytes | None = None, **defaults: str) -> int:
        try:
            # The complete environment, unlike for commands of the model: the user runs these programs.
            environ = {**defaults, **self._environ}
            self._running = subprocess.Popen(
                prefer_outside(words, environ, self._cwd),
                cwd=self._cwd,
                stdin=subprocess.PIPE if stdin is not None else None,
                env=environ,
            )
        except OSError as error:
            raise InputError(f"cannot start {words[0]!r}: {error.strerror}") from error
        try:
            # Quitting a pager before it has read everything is not an error.
            with contextlib.suppress(BrokenPipeError):
                self._running.communicate(stdin)
            return self._running.wait()
        finally:
            self._running = None


def prefer_outside(words: Sequence[str], environ: Mapping[str, str], folder: Path) -> list[str]:
    """Return a command line whose program cannot have been put into the folder by commands of a run.

    A program found nowhere else on PATH is taken from there: it is the user's own.
    """
    found = None if "/" in words[0] else find_program(words[0], environ, folder)
    return [found or words[0], *words[1:]]


def _split_command(command: str) -> list[str]:
    try:
        return shlex.split(command) or [_EDITOR]
    except ValueError as error:
        raise InputError(f"cannot parse {command!r}: {error}") from error
