"""`agent exec`: run one command exactly as the agent's shell tool would."""

import io
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from agent.diagnostics.one_call import CommandResult, run_command
from agent.tool_setup import ToolEnvironment
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import UsageError
from cli.run import flags as flag
from cli.run.flag_checks import check_flags
from cli.run.progress import print_stderr
from cli.run.standalone_call import CallOptions, run_standalone
from cli.run.stdout import sanitize_for_terminal, write_line

# Everything after the first word belongs to the command, including words with dashes.
CONTEXT = {"allow_interspersed_args": False}
_REFUSED = ("denied", "deferred", "blocked")
Words = Annotated[
    list[str] | None, typer.Argument(metavar="-- CMD…", help="A shell command, or a program and its arguments.")
]
SkipCheck = Annotated[
    bool, typer.Option("--skip-check", help="Skip the safety check and approvals, but not the sandbox.")
]

Timeout = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", help="Time limit of the command.")]

TIMED_OUT = "error: the command exceeded its time limit; --timeout SECONDS or the setting `command_timeout_s` raise it"
_CHUNK_CHARS = 65_536


def command(
    words: Words = None,
    *,
    cwd: flag.Folder = None,
    add_dirs: flag.AddDirs = None,
    skip_check: SkipCheck = False,
    backend: flag.Backend = None,
    docker_image: flag.Image = None,
    allow_net: flag.AllowNet = None,
    allow: flag.Allow = None,
    deny: flag.Deny = None,
    timeout: Timeout = None,
    assignments: flag.Assignments = None,
) -> None:
    """Run one command with the agent's checks, sandbox and limits. Exits with the command's exit code."""
    check_flags(locals())
    if not words:
        raise UsageError("no command given", "write it after `--`: agent exec -- ls -l")
    line = words[0] if len(words) == 1 else shlex.join(words)
    options = CallOptions(
        cwd=cwd,
        add_dirs=tuple(add_dirs or ()),
        flags={
            "backend": backend,
            "docker_image": docker_image,
            "allow_net": allow_net,
            "allow": allow,
            "deny": deny,
            "command_timeout_s": timeout,
        },
        assignments=tuple(assignments or ()),
        is_checked=not skip_check,
    )
    raise typer.Exit(_report(run_standalone(options, lambda environment: _run(line, environment))))


async def _run(line: str, environment: ToolEnvironment) -> CommandResult:
    result = await run_command(line, environment)
    if result.output_path:
        # A long output is only in its file, which is deleted with the scope of this call.
        _copy_output(Path(result.output_path), result.total_bytes)
        result = replace(result, text="")
    return result


def _copy_output(path: Path, total_bytes: int) -> None:
    with path.open("rb") as file:
        if sys.stdout.isatty():
            text = io.TextIOWrapper(file, "utf-8", "backslashreplace")
            while chunk := text.read(_CHUNK_CHARS):
                sys.stdout.write(chunk)
            text.detach()
        else:
            shutil.copyfileobj(file, sys.stdout.buffer)
        saved = file.tell()
    sys.stdout.flush()
    if saved < total_bytes:
        print_stderr(f"warning: only the first {saved} of {total_bytes} bytes of output were saved")


def _report(result: CommandResult) -> int:
    if result.status in _REFUSED:
        print_stderr(result.text)
        return exit_codes.APPROVAL
    if result.status == "timeout":
        print_stderr(TIMED_OUT)
    if result.text:
        write_line(sanitize_for_terminal(result.text))
    return result.exit_code
