"""The command line as typer parses it: with help, completion and error messages."""

import importlib
import shlex
import sys
from collections.abc import Callable, Sequence

import typer

from agent.config.user_dirs import os_environ
from agent.version import VERSION
from agent.vocabulary.errors import UsageError
from cli import prompt_flags as flag
from cli.command_line import CommandLine, check_values, unknown_command
from cli.command_table import COMMANDS, CommandEntry
from cli.messages.translate import translate_help
from cli.options import use_typer

_HELP = "Windlass plans a task as a graph of steps and runs independent steps in parallel."
# The flags of the prompt that are settings.
_SETTINGS = (
    "model",
    "reasoning",
    "planning",
    "approval_mode",
    "allow",
    "deny",
    "backend",
    "docker_image",
    "allow_net",
    "max_budget_usd",
)
_HELP_FLAGS = {"-h", "--help"}
PIPE_HINT = "pipe the task to `agent run`"
_EPILOG = (
    "Without a command, `agent` opens an interactive prompt, and `agent TASK` sends it a first request. "
    "`agent -p TASK` is short for `agent run TASK`, `agent help COMMAND` for `agent COMMAND --help`."
)


def run_with_typer(line: CommandLine, typed: Sequence[str], preload: Callable[[], None]) -> int:
    """Parse a command line, as it was `typed`, and run its command; `preload` imports what does the work."""
    program = build_application(line.command)
    if any(not word.strip() or word.endswith("=") for word in typed):
        from cli.completion.command_tree import build_tree

        check_values(line.arguments, build_tree(program))
    # Help needs nothing of what does the work.
    if not _HELP_FLAGS.intersection(line.arguments):
        preload()
    command = typer.main.get_command(program)
    translate_help(command)
    command(line.arguments, prog_name="agent", obj=line.request)
    return 0


def build_application(wanted: str | None) -> typer.Typer:
    """Build the command line with one command loaded; the others are only listed in the help."""
    program = typer.Typer(
        help=_HELP,
        epilog=_EPILOG,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    program.callback(invoke_without_command=True)(use_typer(_open_repl))
    for entry in COMMANDS:
        _register(program, entry, is_loaded=entry.name == wanted)
    return program


def _register(program: typer.Typer, entry: CommandEntry, *, is_loaded: bool) -> None:
    if not is_loaded:
        program.command(entry.name, help=entry.help)(_not_loaded)
        return
    place = f"cli.commands.{entry.folder}" if entry.folder else "cli.commands"
    module = importlib.import_module(f"{place}.{entry.name}")
    if entry.is_group:
        program.add_typer(_use_typer(module.app), name=entry.name, help=entry.help)
    else:
        command: Callable[..., None] = module.command
        context: dict[str, object] = getattr(module, "CONTEXT", {})
        program.command(entry.name, help=entry.help, context_settings=context)(use_typer(command))


def _use_typer(app: typer.Typer) -> typer.Typer:
    for command in app.registered_commands:
        if command.callback:
            command.callback = use_typer(command.callback)
    return app


def _handle_completion(install: str | None, show: str | None) -> None:
    from cli.completion.install import install as install_script
    from cli.completion.install import read_script, resolve_shell

    environ = os_environ()
    if show is not None:
        print(read_script(resolve_shell(show, environ)), end="")
    if install is not None:
        print("\n".join(install_script(resolve_shell(install, environ), environ)), file=sys.stderr)


def _not_loaded() -> None:
    raise AssertionError("a command that was not loaded cannot be called")


def _open_repl(
    context: typer.Context,
    *,
    version: flag.Version = False,
    install: flag.Install = None,
    show: flag.Show = None,
    continue_last: flag.Last = False,
    resume: flag.OpenSession = None,
    cwd: flag.Folder = None,
    model: flag.Model = None,
    reasoning: flag.Reasoning = None,
    planning: flag.Planning = None,
    approval_mode: flag.Mode = None,
    allow: flag.Allow = None,
    deny: flag.Deny = None,
    backend: flag.Backend = None,
    docker_image: flag.Image = None,
    allow_net: flag.AllowNet = None,
    max_budget_usd: flag.MaxBudget = None,
    profile: flag.Profile = None,
    worktree: flag.Worktree = None,
) -> None:
    given = dict(locals())
    if context.invoked_subcommand:
        return
    if version:
        print(f"windlass {VERSION}")
    elif install is not None or show is not None:
        _handle_completion(install, show)
    else:
        from cli.run.flag_checks import check_flags, check_network

        check_flags(given)
        check_network(given, backend or "")
        request = str(context.obj or "")
        _require_terminal(request)
        from cli.repl.start import open_repl

        settings = {name: given[name] for name in _SETTINGS if given[name] is not None}
        session = "" if continue_last else resume
        raise typer.Exit(open_repl(settings, cwd, session, profile=profile, request=request, worktree=worktree))


def _require_terminal(request: str) -> None:
    if sys.stdin.isatty() and sys.stdout.isatty():
        return
    if request and " " not in request:
        raise unknown_command(request, [entry.name for entry in COMMANDS])
    task = shlex.quote(request) if request else '"your task"'
    hint = f"use `agent run {task}`" + ("" if request else f", or {PIPE_HINT}; see also `agent --help`")
    raise UsageError("the interactive prompt needs a terminal", hint)
