"""Putting completion in place: the script of a shell, and the line that loads it."""

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
_PROGRAM_NAMES = ("agent", "windlass")


def read_script(shell: str) -> str:
    """Return what a shell must read."""
    return (files("cli.completion") / f"agent.{shell}").read_text("utf-8")


def resolve_shell(name: str, environ: Mapping[str, str]) -> str:
    """Return the shell that was named; without a name the one this program was started from, else the person's own."""
    if name:
        if name not in SHELLS:
            raise UsageError(
                f"there is no completion for {name!r}{did_you_mean(name, list(SHELLS))}", f"for {', '.join(SHELLS)}"
            )
        return name
    found = next(
        (shell for shell in (_parent_process_name(), Path(environ.get("SHELL", "")).name) if shell in SHELLS), None
    )
    if found is None:
        raise UsageError("which shell is this?", "name it: agent --install-completion bash, zsh or fish")
    return found


def install(shell: str, environ: Mapping[str, str]) -> list[str]:
    """Write the script and have it loaded by every new shell; return what was done, as lines."""
    try:
        if shell == "fish":
            folder = _resolve_dir(environ, "XDG_CONFIG_HOME", ".config") / "fish" / "completions"
            paths = [_write(folder / f"{name}.fish", read_script(shell)) for name in _PROGRAM_NAMES]
            return [f"{paths[0]}: written", "completion works in the next fish"]
        path = _write(config_dir(environ) / f"completion.{shell}", read_script(shell))
        start = (
            _resolve_dir(environ, "ZDOTDIR", "") / ".zshrc"
            if shell == "zsh"
            else _resolve_dir(environ, "", "") / ".bashrc"
        )
        is_new = _add_source_line(start, path)
    except OSError as error:
        hint = f"put the output of `agent --show-completion {shell}` where your shell reads it"
        raise InputError(f"{error.filename}: {error.strerror}", hint) from error
    told = f"{start}: a line that loads it was added" if is_new else f"{start}: loads it already"
    return [f"{path}: written", told, f"completion works in the next {shell}, or now after: . {shlex.quote(str(path))}"]


def _parent_process_name() -> str:
    """Return the name of the program that started this one."""
    command = ["ps", "-o", "comm=", "-p", str(os.getppid())]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    # A login shell has a dash before its name, and some systems tell the whole path.
    return Path(ended.stdout.strip().removeprefix("-")).name


def _resolve_dir(environ: Mapping[str, str], variable: str, below: str) -> Path:
    chosen = environ.get(variable, "")
    return Path(chosen) if chosen.startswith("/") else Path(environ.get("HOME") or Path.home()) / below


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def _add_source_line(start: Path, script: Path) -> bool:
    """Add a line at the end of a shell's start file, which is never written anew; False when it is there already."""
    line = f"[ -r {shlex.quote(str(script))} ] && . {shlex.quote(str(script))}"
    before = start.read_text("utf-8", "surrogateescape") if start.exists() else ""
    if line in before:
        return False
    with start.open("a", encoding="utf-8") as file:
        file.write(f"{'' if before.endswith(chr(10)) or not before else chr(10)}\n# Completion of agent\n{line}\n")
    return True
