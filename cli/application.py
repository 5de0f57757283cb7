"""The command line as a table: every command is listed, only the one asked for is loaded."""

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
    """One command: its module in `cli.commands` holds `command` (one deed) or `app` (several).

    `works_with` is what does the work; whoever only wants to know the flags does without it.
    """

    name: str
    help: str
    is_group: bool = False
    preload: str = ""


COMMANDS = (
    CommandEntry(name="run", help="Do one task, start to end.", preload="cli.run.run_task"),
    CommandEntry(name="resume", help="Go on with a run that did not finish.", preload="cli.run.run_task"),
    CommandEntry(name="plan", help="Plan a task; execute nothing.", preload="cli.run.run_task"),
    CommandEntry(name="exec", help="Run one command as the agent would: same checks, same box."),
    CommandEntry(name="check", help="Judge a command; run nothing."),
    CommandEntry(name="demo", help="See a whole run, without a key or a network."),
    CommandEntry(name="sessions", help="Sessions and what they changed.", is_group=True),
    CommandEntry(name="runs", help="Runs and the evidence behind their answers.", is_group=True),
    CommandEntry(name="memory", help="What is remembered from run to run.", is_group=True),
    CommandEntry(name="tools", help="What the model may use.", is_group=True),
    CommandEntry(name="rules", help="Which commands run unasked, and which never run.", is_group=True),
    CommandEntry(name="config", help="Settings and where they come from.", is_group=True),
    CommandEntry(name="doctor", help="Check that everything a run needs is there."),
)
# What the shells' scripts call: `agent __complete bash …`.
COMPLETE = "__complete"
_HELP = "Windlass plans a task as a graph of steps, runs them side by side, and says what it did."
_VERSION = typer.Option("--version", help="Show the version.")
_SHELL = "[SHELL]"
_INSTALL = typer.Option("--install-completion", metavar=_SHELL, help="Let bash, zsh or fish complete with Tab.")
_SHOW = typer.Option("--show-completion", metavar=_SHELL, help="Show the script that would be installed.")
_CONTINUE = typer.Option("-c", "--continue", help="Open the prompt in the last session.")
_RESUME = typer.Option("-r", "--resume", metavar="SESSION", help="Open the prompt in a session.")
_EPILOG = "`agent -p PROMPT` is `agent run PROMPT`."


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
    # What is loaded stays; from here on garbage is looked for, but not among that.
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
        where = f"{error.filename}: " if error.filename else "the output could not be written: "
        show_error(AgentError(f"{where}{error.strerror}"))
        return AgentError.exit_code
    return 0


def _unknown_command(word: str) -> UsageError:
    from tooling.contract.json_codec import did_you_mean

    known = "" if " " in word else did_you_mean(word, [entry.name for entry in COMMANDS])
    return UsageError(
        f"there is no command {word!r}{known}", f'a task is written behind `agent run`: agent run "{word}"'
    )


def show_error(error: AgentError) -> None:
    """Tell the person what happened and what to do."""
    try:
        text = f"error: {error.message}" + (f"\nhint: {error.hint}" if error.hint else "")
        print(_wrap_for_terminal(text), file=sys.stderr)
    except OSError:
        # Nobody can read it; the exit code still says it.
        pass


def _wrap_for_terminal(text: str) -> str:
    """Return a text with its lines broken between words where a terminal would break them anywhere."""
    if not sys.stderr.isatty():
        return text
    from cli.pages.pages import wrap_text

    return wrap_text(text)


def _expand_prompt_flag(arguments: list[str]) -> list[str]:
    """Turn `agent … -p PROMPT …` into `agent run … PROMPT …`."""
    first = arguments[0] if arguments else ""
    if first.startswith("-") and (short := next((flag for flag in ("-p", "--prompt") if flag in arguments), None)):
        place = arguments.index(short)
        prompt, rest = arguments[place + 1 : place + 2], [*arguments[:place], *arguments[place + 2 :]]
        return ["run", *rest, *(["--", *prompt] if prompt else [])]
    # The shell need not be named; click knows no flag whose value may be left out.
    return [*arguments, ""] if arguments[-1:] in (["--install-completion"], ["--show-completion"]) else arguments


def build_application(wanted: str | None) -> typer.Typer:
    """Return the command line with one command that can be called; the others are only listed."""
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
    from cli.completion.install import install as put_in_place
    from cli.completion.install import read_script, resolve_shell

    environ = os_environ()
    if show is not None:
        print(read_script(resolve_shell(show, environ)), end="")
    if install is not None:
        print("\n".join(put_in_place(resolve_shell(install, environ), environ)), file=sys.stderr)


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
        raise UsageError("-c and -r before a command are for the prompt alone", "write them behind `agent run`")
    if context.invoked_subcommand is None:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            hint = 'use `agent run "your task"`, or pipe the task to `agent run`; `agent --help` lists the rest'
            raise UsageError("the interactive prompt needs a terminal", hint)
        from cli.repl.start import open_repl

        raise typer.Exit(open_repl({}, session="" if last else session))
