"""The table of built-in slash commands; many run the `agent` command of the same name."""

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence

from agent.protocol.commands import StopStep
from agent.vocabulary.errors import UsageError
from cli.pages.columns import render_rows
from cli.repl.commands import request_commands as requests
from cli.repl.commands import session_commands as sessions
from cli.repl.commands import setting_commands as settings
from cli.repl.commands.session_commands import split_words
from cli.repl.repl import Repl
from cli.repl.slash_commands import Candidate, SlashCommand, unknown_command
from cli.screen.colors import THEMES, clip
from tooling.tool_catalog import CatalogCommand

EMPTY_QUEUE = "the queue is empty"
NO_PLAN = "no plan yet"
WHICH_STEP = "Stop which step?"


async def _help(repl: Repl, argument: str) -> None:
    name = argument.removeprefix("/")
    if all(command.name != name for command in repl.commands):
        await repl.wait_loaded()
    commands = [command for command in repl.commands if not name or command.name == name]
    if not commands:
        raise unknown_command(name, repl.commands)
    lines = render_rows([(f"  {_usage(command)}", command.help) for command in commands], repl.ui.columns)
    repl.print_line("\n".join([*lines, *([] if name else ["", *(f"  {line}" for line in KEY_HELP)])]))


def _cost(repl: Repl, argument: str) -> None:
    repl.print_line(repl.state.cost_text())


def _queue(repl: Repl, argument: str) -> None:
    match argument.split():
        case []:
            pass
        case ["clear"]:
            repl.queue.clear()
        case ["drop" | "edit" as action, number] if number.isdecimal():
            request = repl.queue.pop(int(number))
            if request is None:
                raise UsageError(f"no request {number} in the queue", "/queue lists the queued requests")
            if action == "edit" and not repl.ui.set_text(request.display_text, is_request=not request.title):
                repl.print_line(f"removed from the queue; type it again: {request.display_text}")
        case _:
            raise UsageError(
                f"unknown argument {argument!r}", "try /queue, /queue drop 2, /queue edit 2 or /queue clear"
            )
    room = repl.ui.columns - 6
    lines = [f"  {number}. {clip(request.display_text, room)}" for number, request in enumerate(repl.queue.pending, 1)]
    repl.print_line("\n".join(lines) or EMPTY_QUEUE)


def _complete_queue(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
    match typed:
        case [_]:
            return [("drop", "remove one"), ("edit", "move one back to the prompt"), ("clear", "remove all")]
        case ["drop" | "edit", _]:
            return [(str(number), request.display_text) for number, request in enumerate(repl.queue.pending, 1)]
        case _:
            return ()


def _btw(repl: Repl, argument: str) -> Awaitable[None]:
    return repl.asides.ask(argument)


def _exit(repl: Repl, argument: str) -> None:
    repl.exit()


def _plan(repl: Repl, argument: str) -> None:
    if argument:
        repl.submit(argument, is_reviewed=True, title=f"/plan {argument}")
    else:
        lines = repl.ui.plan.lines(repl.ui.columns)
        repl.ui.print_line("\n".join(lines) or NO_PLAN)


async def _stop(repl: Repl, argument: str) -> None:
    """Stop a running step: the named one, the only one, or the one the user picks."""
    running = repl.ui.running_steps
    if argument not in ("", *running) or not running:
        raise UsageError(f"no running step {argument}".rstrip(), f"running: {', '.join(running) or 'none'}")
    step = argument or running[0]
    if not argument and len(running) > 1:
        chosen = await repl.pick_during_run(WHICH_STEP, [(step, repl.ui.plan.title(step)) for step in running])
        if chosen is None:
            return
        step = chosen
    repl.queue.send(StopStep(step_id=step))


def _complete_running(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
    return [(step, repl.ui.plan.title(step)) for step in repl.ui.running_steps] if len(typed) == 1 else ()


def _context(repl: Repl, argument: str) -> None:
    from cli.repl.commands.context_command import context_lines

    if argument not in ("", "drop"):
        raise UsageError(f"unknown argument {argument!r}", "/context drop discards the output of your ! commands")
    if argument:
        repl.shell_output = ""
    repl.print_line("\n".join(context_lines(repl.state, repl.queue.session_id, repl.shell_output)))


def _plugins(repl: Repl, argument: str) -> Awaitable[None]:
    return repl.plugins.open_menu() if repl.plugins else repl.run_agent_command("plugins", "list")


def plugin_command(offered: CatalogCommand) -> SlashCommand:
    """Wrap a plugin's command; it calls the tool through `agent tools call`, with the same approvals."""
    command = offered.command
    fixed = [f"{key}:={json.dumps(value)}" for key, value in command.args.items()]

    def run(repl: Repl, argument: str) -> Awaitable[None]:
        typed = [f"{command.argument}={argument}"] if command.argument and argument else []
        return repl.run_agent_command("tools", "call", "-C", str(repl.state.cwd), offered.tool, *fixed, *typed)

    usage = f"[{command.argument.upper()}]" if command.argument else ""
    return SlashCommand(name=command.name, help=command.help, usage=usage, run=run)


def _forward(*words: str) -> Callable[[Repl, str], Awaitable[None]]:
    """Run `agent WORDS…` with the typed arguments appended."""
    return lambda repl, argument: repl.run_agent_command(*words, *split_words(argument))


def _forward_group(name: str, default: str) -> Callable[[Repl, str], Awaitable[None]]:
    """Run a subcommand of `agent NAME`, or the default one if no arguments are given."""
    return lambda repl, argument: repl.run_agent_command(name, *(split_words(argument) or (default,)))


def _forward_session(*words: str) -> Callable[[Repl, str], Awaitable[None]]:
    return lambda repl, argument: repl.run_agent_command(*words, repl.require_session_id(), *split_words(argument))


def _forward_run(*words: str) -> Callable[[Repl, str], Awaitable[None]]:
    return lambda repl, argument: repl.run_agent_command(*words, repl.require_run_id(), *split_words(argument))


def _search(repl: Repl, argument: str) -> Awaitable[None]:
    if not argument:
        raise UsageError("nothing to search for", "/search WORDS; add --deep to search the complete logs")
    return repl.run_agent_command("sessions", "search", *split_words(argument))


def _usage(command: SlashCommand) -> str:
    return f"/{command.name} {command.usage}".rstrip()


KEY_HELP = (
    "Enter sends; Ctrl-J, Alt-Enter or a backslash before Enter start a new line. Tab completes, Ctrl-R searches your"
    " history, Ctrl-X Ctrl-E opens your editor.",
    "During a run: Enter queues, Ctrl-S sends to the running steps, Esc stops the run to redirect it, Ctrl-C stops it.",
    "Shift-Tab switches between ask, auto-edit and plan mode, Esc Esc rewinds to an earlier request.",
    "Ctrl-O shows folded output, Ctrl-L clears, Ctrl-Z suspends, Ctrl-D quits.",
    "@path attaches a file or a folder listing, !command runs a shell command, #note saves to memory.",
)


def _complete_words(*words: str) -> Callable[[Repl, Sequence[str]], Iterable[Candidate]]:
    return lambda repl, typed: [(word, "") for word in words] if len(typed) == 1 else ()


def _complete_names(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
    return [(command.name, command.help) for command in repl.commands] if len(typed) == 1 else ()


def _complete_as(*words: str) -> Callable[[Repl, Sequence[str]], Iterable[Candidate]]:
    """Complete as the shell would after `agent WORDS…`."""

    def complete(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
        from cli.completion.complete import complete_words
        from cli.typer_program import build_application

        return [(item.word, item.description) for item in complete_words([*words, *typed], build_application).items]

    return complete


def _complete_undo(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
    everything = [("all", "everything the session changed")] if len(typed) == 1 else []
    return [*everything, *_complete_as("sessions", "undo", "_")(repl, typed)]


COMMANDS = (
    SlashCommand(name="help", usage="[COMMAND]", help="List commands and keys.", run=_help, complete=_complete_names),
    SlashCommand(
        name="model",
        usage="[NAME]",
        help="Show or set the model.",
        run=settings.model,
        complete=_complete_as("run", "--model"),
    ),
    SlashCommand(
        name="mode",
        usage="[MODE]",
        help="Show or set the approval mode.",
        run=settings.mode,
        complete=_complete_words(*settings.MODES),
    ),
    SlashCommand(
        name="budget",
        usage="[TOKENS|$USD|off]",
        help="Show or set the limits of a run.",
        run=settings.budget,
        complete=_complete_words("off"),
    ),
    SlashCommand(name="cost", help="Show what this session has cost.", run=_cost),
    SlashCommand(
        name="queue",
        usage="[drop|edit N|clear]",
        help="Show or edit the queue.",
        run=_queue,
        complete=_complete_queue,
    ),
    SlashCommand(name="btw", usage="QUESTION", help="Ask beside the run, without touching it.", run=_btw),
    SlashCommand(name="plan", usage="[REQUEST]", help="Show the plan, or make one and decide on it.", run=_plan),
    SlashCommand(
        name="init",
        help="Let the model write or revise AGENTS.md.",
        run=requests.init,
        is_replaceable=True,
    ),
    SlashCommand(
        name="review",
        usage="[BRANCH|RANGE]",
        help="Review your changes, a branch or a range.",
        run=requests.review,
        complete=requests.complete_branches,
        is_replaceable=True,
    ),
    SlashCommand(
        name="stop",
        usage="[STEP]",
        help="Stop a step of the running plan.",
        run=_stop,
        complete=_complete_running,
    ),
    SlashCommand(
        name="steps",
        usage="[--json]",
        help="List the steps of the last run.",
        run=_forward_run("runs", "show"),
        complete=_complete_as("runs", "show", "_"),
    ),
    SlashCommand(
        name="why",
        usage="STEP",
        help="Show the evidence for a step.",
        run=sessions.why,
        complete=sessions.complete_steps,
    ),
    SlashCommand(
        name="context",
        usage="[drop]",
        help="Show how full the context is, by part.",
        run=_context,
        complete=_complete_words("drop"),
    ),
    SlashCommand(name="compact", help="Summarize the conversation to free context.", run=sessions.compact),
    SlashCommand(
        name="tools",
        usage="[show NAME]",
        help="List the tools the model can use.",
        run=_forward_group("tools", "list"),
        complete=_complete_as("tools"),
    ),
    SlashCommand(name="plugins", help="Open the menu of a plugin.", run=_plugins),
    SlashCommand(
        name="mcp",
        usage="[test NAME]",
        help="List your MCP servers.",
        run=_forward_group("mcp", "list"),
        complete=_complete_as("mcp"),
    ),
    SlashCommand(
        name="rules",
        usage="[add|rm …]",
        help="Show what runs without asking.",
        run=_forward_group("rules", "list"),
        complete=_complete_as("rules"),
    ),
    SlashCommand(
        name="memory",
        usage="[add|forget|clear …]",
        help="Show or edit what is remembered.",
        run=_forward_group("memory", "show"),
        complete=_complete_as("memory"),
    ),
    SlashCommand(
        name="sessions",
        usage="[show|rm …]",
        help="List your sessions.",
        run=_forward_group("sessions", "list"),
        complete=_complete_as("sessions"),
    ),
    SlashCommand(
        name="diff",
        usage="[--by-step]",
        help="Show what this session changed.",
        run=_forward_session("sessions", "diff"),
        complete=_complete_as("sessions", "diff", "_"),
    ),
    SlashCommand(
        name="worktree",
        usage="[diff|merge]",
        help="Show or merge the changes in this worktree.",
        run=sessions.worktree,
        complete=_complete_words("diff", "merge"),
    ),
    SlashCommand(
        name="undo",
        usage="[all]",
        help="Undo the changes of the last request.",
        run=sessions.undo,
        complete=_complete_undo,
    ),
    SlashCommand(
        name="redo",
        usage="[--yes]",
        help="Redo what /undo reverted.",
        run=sessions.redo,
        complete=_complete_as("sessions", "undo", "_"),
    ),
    SlashCommand(name="rewind", help="Take back a request and everything after it.", run=sessions.rewind),
    SlashCommand(
        name="resume",
        usage="[SESSION|RUN]",
        help="Resume a session or an unfinished run.",
        run=sessions.resume,
        complete=_complete_as("run", "--resume"),
    ),
    SlashCommand(name="fork", usage="[ID]", help="Continue in a copy of this session.", run=sessions.fork),
    SlashCommand(
        name="export",
        usage="[FILE]",
        help="Export this session.",
        run=sessions.export,
        complete=_complete_as("sessions", "export", "_"),
    ),
    SlashCommand(
        name="search",
        usage="TEXT",
        help="Search your sessions.",
        run=_search,
        complete=_complete_as("sessions", "search"),
    ),
    SlashCommand(
        name="doctor",
        usage="[--json]",
        help="Check your setup.",
        run=_forward("doctor"),
        complete=_complete_as("doctor"),
    ),
    SlashCommand(name="demo", help="Watch a complete run; needs no API key.", run=_forward("demo")),
    SlashCommand(name="clear", help="Start a new session.", run=sessions.clear),
    SlashCommand(
        name="theme",
        usage="[NAME]",
        help="Colors for light or dark backgrounds.",
        run=settings.theme,
        complete=_complete_words(*THEMES),
    ),
    SlashCommand(name="exit", help="Quit.", run=_exit),
    SlashCommand(name="quit", help="Quit.", run=_exit),
)
