"""Runs a command line: finds the command in the table, imports only that one, and reports errors."""

import gc
import importlib
import os
import sys

from agent.config.user_dirs import current_folder, os_environ
from agent.vocabulary.errors import AgentError
from cli.command_line import CommandLine, read_command_line
from cli.command_table import COMMANDS
from cli.exit import could_not_write
from cli.messages.translate import stored_help, translate
from cli.quick_parse import parse_quickly

RUN = "run"
# Called by the completion scripts: `agent __complete bash …`.
COMPLETE = "__complete"
_HELP = (["--help"], ["-h"])
# Width that typer assumes without a terminal.
_DEFAULT_COLUMNS = 80
_OBJECTS_PER_COLLECTION = 5000


def run_cli(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    if arguments[:1] == [COMPLETE]:
        from cli.completion.complete import print_completions
        from cli.typer_program import build_application

        return print_completions(arguments[1:], build_application)
    try:
        line = read_command_line(arguments, {entry.name: entry.default for entry in COMMANDS})
        return _run_command(line, arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except AgentError as error:
        show_error(error)
        return error.exit_code
    except BrokenPipeError:
        return 0
    except OSError as error:
        problem = _describe_os_error(error)
        show_error(problem)
        return problem.exit_code


def _run_command(line: CommandLine, typed: list[str]) -> int:
    if line.arguments in _HELP and (page := stored_help(_columns())):
        print(page, end="")
        return 0
    given = _parse_run(line) if line.command == RUN else None
    if given is None:
        from cli.typer_program import run_with_typer

        return run_with_typer(line, typed, lambda: _preload(line))
    _preload(line)
    from cli.run.run_task import run_task

    return run_task(given)


def _columns() -> int:
    """Return the width of the terminal like `shutil.get_terminal_size`, which takes longer to import."""
    given = os_environ().get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else _DEFAULT_COLUMNS
    except (OSError, ValueError):
        return _DEFAULT_COLUMNS


def _parse_run(line: CommandLine) -> dict[str, object] | None:
    """Return the flags of `agent run`, or None if they are unusual."""
    from cli.commands.run import command

    return parse_quickly(command, line.arguments[1:])


def _preload(line: CommandLine) -> None:
    """Import the modules that do the work of the command."""
    for entry in COMMANDS:
        if entry.name == line.command and entry.preload:
            importlib.import_module(entry.preload)
    # Loaded modules stay alive: exclude them from garbage collection.
    gc.freeze()
    # The steps of a wide graph create thousands of objects that all stay alive until their replies arrive.
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    gc.enable()


def _describe_os_error(error: OSError) -> AgentError:
    try:
        current_folder()
    except AgentError as problem:
        return problem
    return AgentError(f"{error.filename}: {error.strerror}" if error.filename else could_not_write("output", error))


def show_error(error: AgentError) -> None:
    """Print an error and its hint to stderr."""
    try:
        text = translate(f"error: {error.message}" + (f"\nhint: {error.hint}" if error.hint else ""))
        print(_wrap_for_terminal(text), file=sys.stderr)
    except OSError:
        # stderr is closed; the exit code still reports the error.
        pass


def _wrap_for_terminal(text: str) -> str:
    """Wrap text between words; a terminal would break it anywhere."""
    if not sys.stderr.isatty():
        return text
    from cli.pages.pages import wrap_text

    return wrap_text(text)
