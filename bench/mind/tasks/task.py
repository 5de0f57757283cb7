"""A task: the files of its folder, the request, and a check of the result."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

CHECK_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The folder after an agent's run."""

    folder: Path

    def read(self, name: str) -> str:
        """Return the text of a file, or nothing if there is no such file."""
        path = self.folder / name
        return path.read_text(errors="replace") if path.is_file() else ""

    def run(self, *words: str) -> str:
        """Return the output of a command in the folder, or nothing if it fails.

        The command may run code of a weak model: it has no network, and can write only to the folder.
        """
        result = self._run_confined(*words)
        return result.stdout if result.returncode == 0 else ""

    def python(self, code: str) -> str:
        """Return the output of Python code that runs in the folder, or nothing if it fails."""
        return self.run(sys.executable, "-c", code)

    def passes_tests(self, name: str) -> bool:
        """Return whether pytest finds tests in a file and all of them pass."""
        return self._run_confined(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name).returncode == 0

    def _run_confined(self, *words: str) -> subprocess.CompletedProcess[str]:
        wall = confine(self.folder, has_network=False, readable=(Path(sys.prefix),))
        environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(self.folder)}
        try:
            return subprocess.run(
                [*wall, *words], capture_output=True, text=True, timeout=CHECK_TIMEOUT_S, cwd=self.folder, env=environ
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, returncode=124, stdout="", stderr="timed out")


Check: TypeAlias = Callable[[Work], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task; `check` is true only for exactly the requested result."""

    name: str
    request: str
    files: Mapping[str, str]
    check: Check

    def build(self, folder: Path) -> None:
        """Write the files of the task."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def confine(
    folder: Path, *, has_network: bool, readable: tuple[Path, ...] = (), writable: tuple[Path, ...] = ()
) -> list[str]:
    """Return the start of a command line that lets a program write only to a folder and the named paths."""
    network = [] if has_network else ["--unshare-net"]
    return [
        *("bwrap", "--die-with-parent", "--unshare-pid", "--new-session", *network),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),
        *(word for path in readable for word in ("--ro-bind", str(path), str(path))),
        *(word for path in (folder, *writable) for word in ("--bind", str(path), str(path))),
        *("--chdir", str(folder)),
    ]
