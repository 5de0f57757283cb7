"""The slash commands: what the REPL does itself, and what it hands to the command line's own commands."""

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence

from agent.vocabulary.errors import UsageError
from cli.pages.columns import render_rows
from cli.repl.commands import session_commands as sessions
from cli.repl.commands import setting_commands as settings
from cli.repl.commands.session_commands import split_words
from cli.repl.commands.setting_commands import context_lines
from cli.repl.commands.user_commands import UserCommand
from cli.repl.repl import Repl
from cli.repl.slash_commands import Candidate, SlashCommand, unknown_command
from cli.screen.colors import THEMES, clip
from tooling.tool_catalog import CatalogCommand


async def _help(repl: Repl, argument: str) -> None:
    name = argument.removeprefix("/")
    if all(command.name != name for command in repl.commands):
        await repl.wait_loaded()
    commands = [command for command in repl.commands if not name or command.name == name]
    if not commands:
        raise UsageError(unknown_command(name, repl.commands))
    lines = render_rows([(f"  {_usage(command)}", command.help) for command in commands], repl.ui.columns)
    repl.print_line("\n".join([*lines, *([] if name else ["", *(f"  {keys}" for keys in KEY_HELP)])]))


def _cost(repl: Repl, argument: str) -> None:
    repl.print_line(repl.cost_text())


def _queue(repl: Repl, argument: str) -> None:
    match argument.split():
        case []:
            pass
        case ["clear"]:
            repl.queue.clear()
        case ["drop" | "edit" as deed, number] if number.isdecimal():
            turn = repl.queue.pop(int(number))
            if turn is None:
                raise UsageError(f"there is no request {number} in the queue", "/queue shows what waits")
            if deed == "edit" and not repl.ui.set_text(turn.display_text):
                repl.print_line(f"it is no longer queued; type it anew: {turn.display_text}")
        case _:
            raise UsageError(
                f"the queue cannot {argument!r}", "/queue shows it; /queue drop 2, edit 2 or clear change it"
            )
    room = repl.ui.columns - 6
    lines = [f"  {number}. {clip(turn.display_text, room)}" for number, turn in enumerate(repl.queue.pending, 1)]
    repl.print_line("\n".join(lines) or "nothing is queued")


def _complete_queue(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
    match typed:
        case [_]:
            return [("drop", "take one out"), ("edit", "take one back to the prompt"), ("clear", "drop them all")]
        case ["drop" | "edit", _]:
            return [(str(number), turn.display_text) for number, turn in enumerate(repl.queue.pending, 1)]
        case _:
            return ()


def _clear(repl: Repl, argument: str) -> None:
    repl.new_session()


def _exit(repl: Repl, argument: str) -> None:
    repl.exit()


def _plan(repl: Repl, argument: str) -> None:
    if argument:
        repl.submit(argument, is_reviewed=True, title=f"/plan {argument}")
    else:
        lines = repl.ui.plan.lines(repl.ui.columns)
        repl.ui.print_line("\n".join(lines) or "there is no plan yet")


def _context(repl: Repl, argument: str) -> None:
    if argument not in ("", "drop"):
        raise UsageError(f"the context cannot {argument!r}", "/context drop leaves out the output of your own commands")
    if argument:
        repl.shell_output = ""
    repl.print_line("\n".join(context_lines(repl.state, repl.queue.session_id, repl.shell_output)))


def user_command(own: UserCommand) -> SlashCommand:
    """Return a command that a file of the person's stands for."""
    return SlashCommand(
        name=own.name,
        help=own.help,
        usage=own.usage or "[TEXT]",
        run=lambda repl, argument: repl.submit(own.expand(argument), title=f"/{own.name} {argument}".strip()),
    )


def plugin_command(offered: CatalogCommand) -> SlashCommand:
    """Return a command that calls a plugin's tool, on the one road of every call."""
    command = offered.command
    fixed = [f"{key}:={json.dumps(value)}" for key, value in command.args.items()]

    def run(repl: Repl, argument: str) -> Awaitable[None]:
        typed = [f"{command.argument}={argument}"] if command.argument and argument else []
        return repl.run_agent_command("tools", "call", "-C", str(repl.state.cwd), offered.tool, *fixed, *typed)

    usage = f"[{command.argument.upper()}]" if command.argument else ""
    return SlashCommand(name=command.name, help=command.help, usage=usage, run=run)


def _forward(*words: str) -> Callable[[Repl, str], Awaitable[None]]:
    """Return a deed of the command line; the arguments go along, and no arguments mean what is usual."""
    return lambda repl, argument: repl.run_agent_command(*words, *split_words(argument))


def _forward_group(name: str, usual: str) -> Callable[[Repl, str], Awaitable[None]]:
    return lambda repl, argument: repl.run_agent_command(name, *(split_words(argument) or (usual,)))


def _forward_session(*words: str) -> Callable[[Repl, str], Awaitable[None]]:
    return lambda repl, argument: repl.run_agent_command(*words, repl.require_session_id(), *split_words(argument))


def _forward_run(*words: str) -> Callable[[Repl, str], Awaitable[None]]:
    return lambda repl, argument: repl.run_agent_command(*words, repl.require_run_id(), *split_words(argument))


def _search(repl: Repl, argument: str) -> Awaitable[None]:
    if not argument:
        raise UsageError("what shall be found?", "/search some words; with --deep in all that was said and done")
    return repl.run_agent_command("sessions", "search", *split_words(argument))


def _usage(command: SlashCommand) -> str:
    return f"/{command.name} {command.usage}".rstrip()


KEY_HELP = (
    "Enter sends, Alt-Enter begins a new line, Tab completes, Ctrl-R searches what you typed before,"
    " Ctrl-X Ctrl-E opens your editor.",
    "While a run goes on: Enter queues, Ctrl-S tells it something, Esc ends a step, Ctrl-C ends the run.",
    "Ctrl-O shows what was folded, Ctrl-L clears the window, Ctrl-Z stops, Ctrl-D leaves.",
    "@path takes a file along, !command runs your own command, #note remembers something.",
)


def _complete_words(*words: str) -> Callable[[Repl, Sequence[str]], Iterable[Candidate]]:
    return lambda repl, typed: [(word, "") for word in words] if len(typed) == 1 else ()


def _complete_names(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
    return [(command.name, command.help) for command in repl.commands] if len(typed) == 1 else ()


def _complete_as(*words: str) -> Callable[[Repl, Sequence[str]], Iterable[Candidate]]:
    """Return what the command line itself would offer in this place."""

    def complete(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
        from cli.application import build_application
        from cli.completion.complete import complete_words

        return [(item.word, item.description) for item in complete_words([*words, *typed], build_application).items]

    return complete


def _complete_undo(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
    all_of_it = [("all", "all that the session changed")] if len(typed) == 1 else []
    return [*all_of_it, *_complete_as("sessions", "undo", "_")(repl, typed)]


COMMANDS = (
    SlashCommand(name="help", usage="[COMMAND]", help="What there is to type.", run=_help, complete=_complete_names),
    SlashCommand(
        name="model",
        usage="[NAME]",
        help="Show or choose the model.",
        run=settings.model,
        complete=_complete_as("run", "--model"),
    ),
    SlashCommand(
        name="mode",
        usage="[MODE]",
        help="Show or choose when you are asked.",
        run=settings.mode,
        complete=_complete_words(*settings.MODES),
    ),
    SlashCommand(
        name="budget",
        usage="[TOKENS|$USD|off]",
        help="Show or set what a run may cost.",
        run=settings.budget,
        complete=_complete_words("off"),
    ),
    SlashCommand(name="cost", help="What this session has cost.", run=_cost),
    SlashCommand(
        name="queue",
        usage="[drop|edit N|clear]",
        help="Show or change what waits.",
        run=_queue,
        complete=_complete_queue,
    ),
    SlashCommand(name="plan", usage="[REQUEST]", help="Show the plan; or plan, edit, then run.", run=_plan),
    SlashCommand(
        name="steps",
        usage="[--json]",
        help="The steps of the last run.",
        run=_forward_run("runs", "show"),
        complete=_complete_as("runs", "show", "_"),
    ),
    SlashCommand(
        name="why", usage="STEP", help="What stands behind a step.", run=sessions.why, complete=sessions.complete_steps
    ),
    SlashCommand(
        name="context",
        usage="[drop]",
        help="What the next request takes along.",
        run=_context,
        complete=_complete_words("drop"),
    ),
    SlashCommand(name="compact", help="Sum up the session, to make room.", run=sessions.compact),
    SlashCommand(
        name="tools",
        usage="[show NAME]",
        help="What the model may use.",
        run=_forward_group("tools", "list"),
        complete=_complete_as("tools"),
    ),
    SlashCommand(
        name="rules",
        usage="[add|rm …]",
        help="What runs unasked.",
        run=_forward_group("rules", "list"),
        complete=_complete_as("rules"),
    ),
    SlashCommand(
        name="memory",
        usage="[add|forget|clear …]",
        help="What is remembered.",
        run=_forward_group("memory", "show"),
        complete=_complete_as("memory"),
    ),
    SlashCommand(
        name="sessions",
        usage="[show|rm …]",
        help="Your sessions.",
        run=_forward_group("sessions", "list"),
        complete=_complete_as("sessions"),
    ),
    SlashCommand(
        name="diff",
        usage="[--by-step]",
        help="What this session changed.",
        run=_forward_session("sessions", "diff"),
        complete=_complete_as("sessions", "diff", "_"),
    ),
    SlashCommand(
        name="undo",
        usage="[all]",
        help="Take back what the last request changed.",
        run=sessions.undo,
        complete=_complete_undo,
    ),
    SlashCommand(
        name="redo",
        usage="[--yes]",
        help="Take back the last /undo.",
        run=sessions.redo,
        complete=_complete_as("sessions", "undo", "_"),
    ),
    SlashCommand(
        name="resume",
        usage="[SESSION|RUN]",
        help="Go on in a session, or with a run cut off.",
        run=sessions.resume,
        complete=_complete_as("run", "--resume"),
    ),
    SlashCommand(name="fork", usage="[ID]", help="Go on in a copy of this session.", run=sessions.fork),
    SlashCommand(
        name="export",
        usage="[FILE]",
        help="Write this session down.",
        run=sessions.export,
        complete=_complete_as("sessions", "export", "_"),
    ),
    SlashCommand(
        name="search",
        usage="TEXT",
        help="Find text in your sessions.",
        run=_search,
        complete=_complete_as("sessions", "search"),
    ),
    SlashCommand(
        name="doctor",
        usage="[--json]",
        help="Check that everything is there.",
        run=_forward("doctor"),
        complete=_complete_as("doctor"),
    ),
    SlashCommand(name="demo", help="See a whole run without a key.", run=_forward("demo")),
    SlashCommand(name="clear", help="Begin a new session.", run=_clear),
    SlashCommand(
        name="theme",
        usage="[NAME]",
        help="Colours for a light or a dark ground.",
        run=settings.theme,
        complete=_complete_words(*THEMES),
    ),
    SlashCommand(name="exit", help="Leave.", run=_exit),
)
