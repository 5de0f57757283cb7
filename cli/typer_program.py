"""The command line parsed by typer, with help, completion and error messages."""

import importlib
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import cast

import typer

from agent.config.user_dirs import os_environ
from agent.version import VERSION
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import UsageError
from cli import prompt_flags as flag
from cli.command_line import CommandLine, check_values, nearest, unknown_command
from cli.command_table import COMMANDS, CommandEntry
from cli.messages.translate import translate_help
from cli.options import use_typer
from tooling.contract.lazy_pattern import lazy_pattern

_HELP = "Windlass is a terminal agent. It works on your task in a sandbox, with parallel steps where that helps."
_HELP_FLAGS = {"-h", "--help"}
# typer vendors click; this is the base of all its errors.
_TYPER_ERROR = next(
    base for base in typer.BadParameter.__mro__ if issubclass(base, Exception) and base.__name__ == "ClickException"
)
_NO_OPTION = lazy_pattern(
    r"(?P<problem>No such option): (?P<name>\S+)(?: (?:Did you mean |\(Possible options: )(?P<near>[^)?]*)[)?])?"
)
_EXTRA_ARGUMENT = lazy_pattern(r"(?P<problem>Got unexpected extra) arguments?(?:\(s\))? \((?P<words>.*)\)")
_OTHER_FLAGS = {
    "-m": "--model",
    "-a": "--approval-mode",
    "--ask-for-approval": "--approval-mode",
    "--permission-mode": "--approval-mode",
    "--full-auto": "--approval-mode auto-edit",
    "--yolo": "--approval-mode yolo",
    "--yes": "--approval-mode yolo",
    "--yes-always": "--approval-mode yolo",
    "--dangerously-skip-permissions": "--approval-mode yolo; the sandbox stays",
    "--dangerously-bypass-approvals-and-sandbox": "--approval-mode yolo; the sandbox stays",
    "--allowedTools": "--allow",
    "--allowed-tools": "--allow",
    "--disallowedTools": "--deny",
    "--disallowed-tools": "--deny",
    "--mcp-config": "--mcp",
    "--session-id": "--session",
    "--fork-session": "--fork of `agent run`, or `/fork` at the prompt",
    "--settings": "--set key=value",
    "--verbose": "--output-format stream-json, or afterwards `agent runs events last`",
    "-V": "--version",
    "--sandbox": "--backend sandbox, which is the default",
    "--json": "--output-format json, or stream-json",
    "--print": "-p, or `agent run`",
    "--message": "-p, or `agent run`",
    "--read": "-f",
    "--config": "--set key=value",
}
PIPE_HINT = "pipe the task to `agent run`"
_EPILOG = (
    "Without a command, `agent` opens an interactive prompt, and `agent TASK` sends it a first request. "
    "`agent -p TASK` is short for `agent run TASK`, `agent help COMMAND` for `agent COMMAND --help`."
)


def run_with_typer(line: CommandLine, typed: Sequence[str], preload: Callable[[], None]) -> int:
    """Parse a command line, as `typed`, and run its command; `preload` imports the modules that do the work."""
    program = build_application(line.command)
    if any(not word.strip() or word.endswith("=") for word in typed):
        from cli.completion.command_tree import build_tree

        check_values(line.arguments, build_tree(program))
    # Help does not need the modules that do the work.
    if not _HELP_FLAGS.intersection(line.arguments):
        preload()
    command = typer.main.get_command(program)
    translate_help(command)
    try:
        ended = command.main(line.arguments, prog_name="agent", obj=line.request, standalone_mode=False)
    except typer.Abort:
        print("Aborted!", file=sys.stderr)
        return exit_codes.FAILED
    except _TYPER_ERROR as error:
        # Its subclasses have this method, and mostly the command that was meant.
        known = cast("typer.BadParameter", error)
        where = known.ctx.command_path if known.ctx else f"agent {line.command or ''}".strip()
        raise _usage_error(known.format_message(), line, where) from error
    return ended if isinstance(ended, int) else exit_codes.OK


def _usage_error(message: str, line: CommandLine, where: str) -> UsageError:
    """Return an error of typer in the form of all others; flags of other agents are known."""
    text = f"{message[:1].lower()}{message[1:].rstrip('.')}"
    if option := _NO_OPTION.match(message):
        text = f"no such option: {option['name']}"
        if line.command == "check" and not line.arguments[1].startswith("-"):
            return UsageError(text, f"quote the command: agent check {shlex.quote(' '.join(line.arguments[1:]))}")
        if option["name"] in _OTHER_FLAGS:
            return UsageError(text, f"here it is {_OTHER_FLAGS[option['name']]}")
        if option["near"] and (near := nearest(option["name"], option["near"].split(", "))):
            text += f", did you mean {near}?"
    if extra := _EXTRA_ARGUMENT.match(message):
        text = f"unexpected argument: {extra['words']}"
        if line.command in ("run", "plan"):
            return UsageError(text, f'put the task in quotes: agent {line.command} "…"')
    return UsageError(text, f"see `{where} --help`")


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
        from cli.run.flag_checks import prompt_settings

        settings = prompt_settings(given)
        request = str(context.obj or "")
        _require_terminal(request)
        from cli.repl.start import open_repl

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
