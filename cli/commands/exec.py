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
from agent.toolbox import ToolEnvironment
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import UsageError
from cli.run import flags as flag
from cli.run.flags import check_backend
from cli.run.progress import print_stderr
from cli.run.standalone_call import CallOptions, run_standalone
from cli.run.stdout import sanitize_for_terminal, write_line

# Everything behind the first word belongs to the command, dashes or not.
CONTEXT = {"ignore_unknown_options": True, "allow_interspersed_args": False}
_REFUSED = ("denied", "deferred", "blocked")
Words = Annotated[
    list[str] | None, typer.Argument(metavar="-- CMD…", help="A shell command, or a program and its arguments.")
]
SkipCheck = Annotated[
    bool, typer.Option("--skip-check", help="Skip the safety check and approvals, but not the sandbox.")
]

_CHUNK_CHARS = 65_536


def command(
    words: Words = None,
    *,
    cwd: flag.Folder = None,
    add_dirs: flag.AddDirs = None,
    skip_check: SkipCheck = False,
    backend: flag.Backend = None,
    allow_net: flag.AllowNet = None,
    allow: flag.Allow = None,
    deny: flag.Deny = None,
    assignments: flag.Assignments = None,
) -> None:
    """Run one command with the agent's checks, box and limits; its exit code is the command's own."""
    if not words:
        raise UsageError("a command is missing", "write it after two dashes: agent exec -- ls -l")
    check_backend(backend)
    line = words[0] if len(words) == 1 else shlex.join(words)
    conditions = CallOptions(
        cwd=cwd,
        add_dirs=tuple(add_dirs or ()),
        flags={"backend": backend, "allow_net": allow_net, "allow": allow, "deny": deny},
        assignments=tuple(assignments or ()),
        is_checked=not skip_check,
    )
    raise typer.Exit(_report(run_standalone(conditions, lambda around: _run(line, around))))


async def _run(line: str, around: ToolEnvironment) -> CommandResult:
    end = await run_command(line, around)
    if end.output_path:
        # The scope takes its files with it; what was too long to hold is written out from its file.
        _copy_output(Path(end.output_path), end.total_bytes)
        end = replace(end, text="")
    return end


def _copy_output(path: Path, total_bytes: int) -> None:
    with path.open("rb") as file:
        if sys.stdout.isatty():
            text = io.TextIOWrapper(file, "utf-8", "backslashreplace")
            while piece := text.read(_CHUNK_CHARS):
                sys.stdout.write(piece)
            text.detach()
        else:
            shutil.copyfileobj(file, sys.stdout.buffer)
        kept = file.tell()
    sys.stdout.flush()
    if kept < total_bytes:
        print_stderr(f"warning: only the first {kept} of {total_bytes} bytes of output were kept")


def _report(end: CommandResult) -> int:
    if end.status in _REFUSED:
        print_stderr(end.text)
        return exit_codes.APPROVAL
    if end.status == "timeout":
        print_stderr("error: stopped at the time limit (`command_timeout_s`)")
    if end.text:
        write_line(sanitize_for_terminal(end.text))
    return end.exit_code
