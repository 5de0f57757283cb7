"""The command table: lists every command, imports only the one that is called."""

import gc
import importlib
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from agent.config.user_dirs import os_environ
from agent.version import VERSION
from agent.vocabulary.errors import AgentError, UsageError
from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEntry:
    """One command. Its module in `cli.commands` defines `command`, or `app` if it is a group.

    `preload` is the module that does the work; help and completion do not import it.
    """

    name: str
    help: str
    is_group: bool = False
    preload: str = ""


COMMANDS = (
    CommandEntry(name="run", help="Run a task and print the answer.", preload="cli.run.run_task"),
    CommandEntry(name="resume", help="Resume a run that did not finish.", preload="cli.run.run_task"),
    CommandEntry(name="plan", help="Plan a task without running it.", preload="cli.run.run_task"),
    CommandEntry(name="exec", help="Run one command with the agent's checks and sandbox."),
    CommandEntry(name="check", help="Show whether a command would be allowed."),
    CommandEntry(name="demo", help="Watch an example run; needs no API key or network."),
    CommandEntry(name="sessions", help="Manage sessions and undo their changes.", is_group=True),
    CommandEntry(name="runs", help="Show runs and the evidence for their answers.", is_group=True),
    CommandEntry(name="memory", help="Manage what is remembered between runs.", is_group=True),
    CommandEntry(name="tools", help="List the agent's tools and call them.", is_group=True),
    CommandEntry(name="rules", help="Manage rules that allow or deny commands.", is_group=True),
    CommandEntry(name="approvals", help="Show what was asked for approval and decided.", is_group=True),
    CommandEntry(name="config", help="Show and change settings.", is_group=True),
    CommandEntry(name="doctor", help="Check your setup."),
)
# Called by the completion scripts: `agent __complete bash …`.
COMPLETE = "__complete"
_HELP = "Windlass plans a task as a graph of steps and runs independent steps in parallel."
_VERSION = typer.Option("--version", help="Show the version and exit.")
_SHELL = "[SHELL]"
_INSTALL = typer.Option("--install-completion", metavar=_SHELL, help="Install tab completion for bash, zsh or fish.")
_SHOW = typer.Option("--show-completion", metavar=_SHELL, help="Print the completion script.")
_CONTINUE = typer.Option("-c", "--continue", help="Open the last session.")
_RESUME = typer.Option("-r", "--resume", metavar="SESSION", help="Open this session.")
PIPE_HINT = "pipe the task to `agent run`"
_EPILOG = "Without a command, `agent` opens an interactive prompt. `agent -p TASK` is short for `agent run TASK`."


def run_cli(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    if arguments[:1] == [COMPLETE]:
        from cli.completion.complete import print_completions

        return print_completions(arguments[1:], build_application)
    arguments = _expand_prompt_flag(arguments)
    wanted = next((word for word in arguments if not word.startswith("-")), None)
    if wanted is not None and arguments[0] == wanted and all(wanted != entry.name for entry in COMMANDS):
        show_error(_unknown_command(wanted))
        return UsageError.exit_code
    program = build_application(wanted)
    for entry in COMMANDS:
        if entry.name == wanted and entry.preload:
            importlib.import_module(entry.preload)
    # Loaded modules stay alive: exclude them from garbage collection.
    gc.freeze()
    gc.enable()
    try:
        program(arguments, prog_name="agent")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except AgentError as error:
        show_error(error)
        return error.exit_code
    except BrokenPipeError:
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else "could not write the output: "
        show_error(AgentError(f"{where}{error.strerror}"))
        return AgentError.exit_code
    return 0


def _unknown_command(word: str) -> UsageError:
    from tooling.contract.json_codec import did_you_mean

    known = "" if " " in word else did_you_mean(word, [entry.name for entry in COMMANDS])
    return UsageError(f"unknown command {word!r}{known}", f'to run a task: agent run "{word}"')


def show_error(error: AgentError) -> None:
    """Print an error and its hint to stderr."""
    try:
        text = f"error: {error.message}" + (f"\nhint: {error.hint}" if error.hint else "")
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


def _expand_prompt_flag(arguments: list[str]) -> list[str]:
    """Turn `agent … -p PROMPT …` into `agent run … PROMPT …`."""
    first = arguments[0] if arguments else ""
    if first.startswith("-") and (short := next((flag for flag in ("-p", "--prompt") if flag in arguments), None)):
        at = arguments.index(short)
        prompt, rest = arguments[at + 1 : at + 2], [*arguments[:at], *arguments[at + 2 :]]
        return ["run", *rest, *(["--", *prompt] if prompt else [])]
    # The shell may be omitted, but click has no options with an optional value.
    return [*arguments, ""] if arguments[-1:] in (["--install-completion"], ["--show-completion"]) else arguments


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
    version: Annotated[bool, _VERSION] = False,
    install: Annotated[str | None, _INSTALL] = None,
    show: Annotated[str | None, _SHOW] = None,
    last: Annotated[bool, _CONTINUE] = False,
    session: Annotated[str | None, _RESUME] = None,
) -> None:
    if version:
        print(f"windlass {VERSION}")
        raise typer.Exit
    if install is not None or show is not None:
        _handle_completion(install, show)
        raise typer.Exit
    if context.invoked_subcommand and (last or session is not None):
        raise UsageError("-c and -r before a command apply only to the prompt", "put them after `agent run`")
    if context.invoked_subcommand is None:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            hint = f'use `agent run "your task"`, or {PIPE_HINT}; see also `agent --help`'
            raise UsageError("the interactive prompt needs a terminal", hint)
        from cli.repl.start import open_repl

        raise typer.Exit(open_repl({}, session="" if last else session))
