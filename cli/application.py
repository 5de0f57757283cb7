"""The command table: lists every command, imports only the one that is called."""

import gc
import importlib
import shlex
import sys
from collections.abc import Callable

import typer

from agent.config.user_dirs import current_folder, os_environ
from agent.version import VERSION
from agent.vocabulary.errors import AgentError, UsageError
from cli import prompt_flags as flag
from cli.command_line import check_values, read_command_line, unknown_command
from cli.exit import could_not_write
from cli.messages.translate import translate, translate_help
from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEntry:
    """One command. Its module in `cli.commands` defines `command`, or `app` if it is a group.

    `default` is the subcommand that a group alone means. `preload` is the module that does the work; help and
    completion do not import it.
    """

    name: str
    help: str
    is_group: bool = False
    default: str = ""
    preload: str = ""


COMMANDS = (
    CommandEntry(name="run", help="Run a task and print the answer.", preload="cli.run.run_task"),
    CommandEntry(name="resume", help="Resume a run that did not finish.", preload="cli.run.run_task"),
    CommandEntry(name="plan", help="Plan a task without running it.", preload="cli.run.run_task"),
    CommandEntry(name="exec", help="Run one command with the agent's checks and sandbox."),
    CommandEntry(name="check", help="Show whether a command would be allowed."),
    CommandEntry(name="demo", help="Watch an example run; needs no API key or network."),
    CommandEntry(name="sessions", help="Manage sessions and undo their changes.", is_group=True, default="list"),
    CommandEntry(
        name="worktrees", help="Merge or discard what runs did in git worktrees.", is_group=True, default="list"
    ),
    CommandEntry(name="runs", help="Show runs and the evidence for their answers.", is_group=True, default="list"),
    CommandEntry(name="memory", help="Manage what is remembered between runs.", is_group=True, default="show"),
    CommandEntry(name="tools", help="List the agent's tools and call them.", is_group=True, default="list"),
    CommandEntry(name="rules", help="Manage rules that allow or deny commands.", is_group=True, default="list"),
    CommandEntry(name="config", help="Show and change settings.", is_group=True, default="show"),
    CommandEntry(name="doctor", help="Check your setup."),
)
# Called by the completion scripts: `agent __complete bash …`.
COMPLETE = "__complete"
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
    "allow_net",
    "max_budget_usd",
)
PIPE_HINT = "pipe the task to `agent run`"
_EPILOG = (
    "Without a command, `agent` opens an interactive prompt, and `agent TASK` sends it a first request. "
    "`agent -p TASK` is short for `agent run TASK`, `agent help COMMAND` for `agent COMMAND --help`."
)


def run_cli(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    if arguments[:1] == [COMPLETE]:
        from cli.completion.complete import print_completions

        return print_completions(arguments[1:], build_application)
    try:
        line = read_command_line(arguments, {entry.name: entry.default for entry in COMMANDS})
        program = build_application(line.command)
        if any(not word.strip() or word.endswith("=") for word in arguments):
            from cli.completion.command_tree import build_tree

            check_values(line.arguments, build_tree(program))
    except AgentError as error:
        show_error(error)
        return error.exit_code
    for entry in COMMANDS:
        if entry.name == line.command and entry.preload:
            importlib.import_module(entry.preload)
    # Loaded modules stay alive: exclude them from garbage collection.
    gc.freeze()
    gc.enable()
    try:
        command = typer.main.get_command(program)
        translate_help(command)
        command(line.arguments, prog_name="agent", obj=line.request)
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
    return 0


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
        # stderr is gone; the exit code still reports the error.
        pass


def _wrap_for_terminal(text: str) -> str:
    """Wrap text between words; a terminal would break it anywhere."""
    if not sys.stderr.isatty():
        return text
    from cli.pages.pages import wrap_text

    return wrap_text(text)


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
    program.callback(invoke_without_command=True)(_open_repl)
    for entry in COMMANDS:
        _register(program, entry, is_loaded=entry.name == wanted)
    return program


def _register(program: typer.Typer, entry: CommandEntry, *, is_loaded: bool) -> None:
    if not is_loaded:
        program.command(entry.name, help=entry.help)(_not_loaded)
        return
    module = importlib.import_module(f"cli.commands.{entry.name}")
    if entry.is_group:
        program.add_typer(module.app, name=entry.name, help=entry.help)
    else:
        command: Callable[..., None] = module.command
        context: dict[str, object] = getattr(module, "CONTEXT", {})
        program.command(entry.name, help=entry.help, context_settings=context)(command)


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
    allow_net: flag.AllowNet = None,
    max_budget_usd: flag.MaxBudget = None,
    profile: flag.Profile = None,
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
        raise typer.Exit(open_repl(settings, cwd, session, profile=profile, request=request))


def _require_terminal(request: str) -> None:
    if sys.stdin.isatty() and sys.stdout.isatty():
        return
    if request and " " not in request:
        raise unknown_command(request, [entry.name for entry in COMMANDS])
    task = shlex.quote(request) if request else '"your task"'
    hint = f"use `agent run {task}`" + ("" if request else f", or {PIPE_HINT}; see also `agent --help`")
    raise UsageError("the interactive prompt needs a terminal", hint)
