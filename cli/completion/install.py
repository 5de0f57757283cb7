"""Installs shell completion: the script, and the line in the shell's start file that loads it."""

import os
import shlex
import subprocess
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from agent.config.user_dirs import config_dir
from agent.vocabulary.errors import InputError, UsageError
from tooling.contract.json_codec import did_you_mean

SHELLS = ("bash", "zsh", "fish")
START_FILE_COMMENT = "# Completion for agent"
_PROGRAM_NAMES = ("agent", "windlass")


def read_script(shell: str) -> str:
    """Return the completion script of a shell."""
    return (files("cli.completion") / f"agent.{shell}").read_text("utf-8")


def resolve_shell(name: str, environ: Mapping[str, str]) -> str:
    """Return the named shell; without a name the parent process's shell, else the user's login shell."""
    if name:
        if name not in SHELLS:
            problem = f"there is no completion for {name!r}{did_you_mean(name, list(SHELLS))}"
            raise UsageError(problem, f"supported shells: {', '.join(SHELLS)}")
        return name
    shell = next(
        (shell for shell in (_parent_process_name(), Path(environ.get("SHELL", "")).name) if shell in SHELLS), None
    )
    if shell is None:
        raise UsageError("cannot tell which shell this is", "name it: agent --install-completion bash, zsh or fish")
    return shell


def install(shell: str, environ: Mapping[str, str]) -> list[str]:
    """Write the script, make every new shell load it, and return a report as lines."""
    try:
        if shell == "fish":
            folder = _resolve_dir(environ, "XDG_CONFIG_HOME", ".config") / "fish" / "completions"
            paths = [_write(folder / f"{name}.fish", read_script(shell)) for name in _PROGRAM_NAMES]
            return [f"{paths[0]}: written", "completion is active in new fish shells"]
        path = _write(config_dir(environ) / f"completion.{shell}", read_script(shell))
        start = (
            _resolve_dir(environ, "ZDOTDIR", "") / ".zshrc"
            if shell == "zsh"
            else _resolve_dir(environ, "", "") / ".bashrc"
        )
        is_new = _add_source_line(start, path)
    except OSError as error:
        hint = f"save the output of `agent --show-completion {shell}` where your shell loads it"
        raise InputError(f"{error.filename}: {error.strerror}", hint) from error
    loads = f"{start}: added a line that loads it" if is_new else f"{start}: already loads it"
    activation = f"completion is active in new {shell} shells; to activate it here: . {shlex.quote(str(path))}"
    return [f"{path}: written", loads, activation]


def _parent_process_name() -> str:
    command = ["ps", "-o", "comm=", "-p", str(os.getppid())]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    # A login shell has a dash before its name, and some systems report the full path.
    return Path(result.stdout.strip().removeprefix("-")).name


def _resolve_dir(environ: Mapping[str, str], variable: str, default: str) -> Path:
    value = environ.get(variable, "")
    return Path(value) if value.startswith("/") else Path(environ.get("HOME") or Path.home()) / default


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def _add_source_line(start: Path, script: Path) -> bool:
    """Append a line to a shell's start file, never rewriting it; return False if the line is already there."""
    line = f"[ -r {shlex.quote(str(script))} ] && . {shlex.quote(str(script))}"
    before = start.read_text("utf-8", "surrogateescape") if start.exists() else ""
    if line in before:
        return False
    with start.open("a", encoding="utf-8") as file:
        file.write(f"{'' if before.endswith(chr(10)) or not before else chr(10)}\n{START_FILE_COMMENT}\n{line}\n")
    return True
