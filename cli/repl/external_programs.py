"""Programs that get the terminal for a while: our own commands, the pager, the editor."""

import contextlib
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.vocabulary.errors import InputError
from tooling.files.temp_dir import TempDir
from tooling.output import decode_output

_EDITOR = "vi"
_PAGER = "less -R"


class ExternalPrograms:
    """Runs one program at a time to its end, in the thread that calls; `send_away` ends it from another."""

    def __init__(self, environ: Mapping[str, str], cwd: Path) -> None:
        self._environ = environ
        self._cwd = cwd
        self._running: subprocess.Popen[bytes] | None = None

    def run_agent(self, *words: str, typed: str | None = None) -> None:
        """Run `agent …`, with `typed` on its stdin: the words of a command can be read by everybody on the machine."""
        # Without -P a `cli.py` in the folder would be taken for ours, and run.
        self._run([sys.executable, "-P", "-m", "cli", *words], None if typed is None else typed.encode())

    def open_pager(self, text: str) -> None:
        """Show a long text in the person's pager."""
        self._run(_split_command(self._environ.get("PAGER") or _PAGER), text.encode("utf-8", "replace"))

    def edit(self, text: str) -> str:
        """Return a text as the person left it in their editor."""
        editor = self._environ.get("VISUAL") or self._environ.get("EDITOR") or _EDITOR
        with TempDir() as folder:
            path = folder / "request.md"
            path.write_text(text, "utf-8", "replace")
            if self._run([*_split_command(editor), str(path)]):
                raise InputError(f"the editor {editor!r} did not end well", "set VISUAL or EDITOR to the one you use")
            return decode_output(path.read_bytes()).removesuffix("\n")

    def terminate(self) -> None:
        """End what still has the terminal."""
        if running := self._running:
            running.terminate()

    def _run(self, words: Sequence[str], typed: bytes | None = None) -> int:
        try:
            # The environment is ours: it is that of a person at their own terminal.
            self._running = subprocess.Popen(
                words, cwd=self._cwd, stdin=subprocess.PIPE if typed is not None else None, env=dict(self._environ)
            )
        except OSError as error:
            raise InputError(f"{words[0]!r} cannot be started: {error.strerror}") from error
        try:
            # A pager that is closed before it has read everything is no error.
            with contextlib.suppress(BrokenPipeError):
                self._running.communicate(typed)
            return self._running.wait()
        finally:
            self._running = None


def _split_command(command: str) -> list[str]:
    try:
        return shlex.split(command) or [_EDITOR]
    except ValueError as error:
        raise InputError(f"{command!r} cannot be read: {error}") from error
