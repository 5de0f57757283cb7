"""Render the help page and store it: `python -m tests.cli.messages.stored_help`, after changing a command or a flag."""

import os
import subprocess
import sys

from cli.messages.translate import SHIPPED, STORED_WIDTHS

_RENDER = "from cli.command_line import CommandLine; from cli.typer_program import run_with_typer; "
_RENDER += "run_with_typer(CommandLine(command=None, arguments=['--help']), ['--help'], lambda: None)"


def render_help(columns: int) -> str:
    """Return the help page as typer renders it for a terminal of this width."""
    environ = {**os.environ, "COLUMNS": str(columns), "AGENT_LANGUAGE": "en", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _RENDER]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    for width in STORED_WIDTHS:
        (SHIPPED / f"help-{width}.txt").write_text(render_help(width), "utf-8")
