"""The slash commands: what the REPL does itself, and what it hands to the command line's own commands."""

import json
import shlex
from collections.abc import Awaitable, Callable, Iterable

from agent.backends.catalogue import OfferedCommand
from agent.config.places import data_dir
from agent.sessions.copying import fork
from agent.sessions.fold import read_session
from agent.sessions.store import SessionStore
from agent.sessions.undo_log import UNDO
from agent.vocabulary.errors import UsageError
from agent.workspace.materials import COMPACT_REQUEST
from cli.repl.context_page import context_lines
from cli.repl.own_files import OwnCommand
from cli.repl.repl import Repl
from cli.repl.slash import SlashCommand
from cli.screen.paint import THEMES, wrapped
from cli.screen.wording import amount, money

_LEAST_HELP = 12
_MODES = ("ask", "auto-edit", "never", "yolo")


def _help(repl: Repl, argument: str) -> None:
    columns = repl.face.columns
    width = max(len(_usage(command)) for command in repl.commands)
    room = columns - width - 4
    lines: list[str] = []
    for command in repl.commands:
        first, *rest = wrapped(command.help, room) if room >= _LEAST_HELP else [command.help]
        lines += [f"  {_usage(command):<{width}}  {first}", *(f"{'':{width + 4}}{line}" for line in rest)]
    repl.say("\n".join([*lines, "", *(line for keys in _KEYS for line in wrapped(f"  {keys}", columns))]))


def _model(repl: Repl, argument: str) -> None:
    if argument:
        repl.place.flags["model"] = argument
    repl.say(f"model: {repl.place.loaded().settings.model or 'none'}")


def _mode(repl: Repl, argument: str) -> None:
    if argument and argument not in _MODES:
        raise UsageError(f"there is no mode {argument!r}", f"one of {', '.join(_MODES)}")
    if argument:
        repl.place.flags["approval_mode"] = argument
    repl.say(f"approval mode: {repl.place.loaded().settings.approval_mode}")


def _budget(repl: Repl, argument: str) -> None:
    if argument:
        name, value = _limit(argument)
        repl.place.flags[name] = value
    settings = repl.place.loaded().settings
    tokens = amount(settings.max_tokens) if settings.max_tokens else "no limit"
    usd = money(settings.max_budget_usd) if settings.max_budget_usd else "no limit"
    repl.say(f"a run may cost: {tokens} of tokens, {usd} of money")


def _limit(argument: str) -> tuple[str, object]:
    is_money = argument.startswith("$")
    try:
        return ("max_budget_usd", float(argument[1:])) if is_money else ("max_tokens", int(argument))
    except ValueError as error:
        raise UsageError(f"{argument!r} is no limit", "/budget 200000 for tokens, /budget $1.50 for money") from error


def _cost(repl: Repl, argument: str) -> None:
    repl.say(repl.cost_text())


def _queue(repl: Repl, argument: str) -> None:
    if argument == "clear":
        repl.turns.waiting.clear()
    lines = [f"  {number}. {turn.submit.prompt}" for number, turn in enumerate(repl.turns.waiting, 1)]
    repl.say("\n".join(lines) or "nothing is queued")


def _clear(repl: Repl, argument: str) -> None:
    repl.new_session()


def _theme(repl: Repl, argument: str) -> None:
    if argument not in THEMES:
        raise UsageError(
            f"there is no theme {argument!r}" if argument else "which theme?", f"one of {', '.join(THEMES)}"
        )
    repl.paint.theme = argument
    repl.say(f"theme: {argument}")


def _exit(repl: Repl, argument: str) -> None:
    repl.leave()


def _plan(repl: Repl, argument: str) -> None:
    if argument:
        repl.ask(argument, is_reviewed=True)
    else:
        repl.say("\n".join(repl.face.plan.lines(repl.face.columns)) or "there is no plan yet")


def _compact(repl: Repl, argument: str) -> None:
    repl.session()
    repl.ask(COMPACT_REQUEST)


def _context(repl: Repl, argument: str) -> None:
    repl.say("\n".join(context_lines(repl.place, repl.turns.session_id)))


def _fork(repl: Repl, argument: str) -> None:
    if repl.turns.is_busy:
        raise UsageError("a run is going on in this session", "fork it when it has ended")
    store = SessionStore(data_dir(repl.place.environ))
    original = repl.session()
    copy = fork(store, store.existing(original), argument or None)
    repl.turns.session_id = copy.id
    repl.say(f"you are in {copy.id} now, a copy of {original}")


def _resume(repl: Repl, argument: str) -> Awaitable[None]:
    return repl.lend_to("resume", *(_words(argument) or filter(None, [repl.turns.run_id])))


async def _redo(repl: Repl, argument: str) -> None:
    store = SessionStore(data_dir(repl.place.environ))
    record = read_session(store.existing(repl.session()))
    undone = next((run.run_id for run in reversed(record.runs) if run.run_id.startswith(UNDO)), None)
    if undone is None:
        raise UsageError("nothing was taken back in this session", "/undo takes back what it changed")
    await repl.lend_to("sessions", "undo", record.id, "--run", undone, *_words(argument))


def own_command(own: OwnCommand) -> SlashCommand:
    """Return a command that a file of the person's stands for."""
    return SlashCommand(
        name=own.name,
        help=own.help,
        usage=own.usage,
        run=lambda repl, argument: repl.ask(own.request(argument)),
    )


def plugin_command(offered: OfferedCommand) -> SlashCommand:
    """Return a command that calls a plugin's tool, on the one road of every call."""
    command = offered.command
    fixed = [f"{key}:={json.dumps(value)}" for key, value in command.args.items()]

    def run(repl: Repl, argument: str) -> Awaitable[None]:
        typed = [f"{command.argument}={argument}"] if command.argument and argument else []
        return repl.lend_to("tools", "call", "-C", str(repl.place.cwd), offered.tool, *fixed, *typed)

    usage = f"[{command.argument.upper()}]" if command.argument else ""
    return SlashCommand(name=command.name, help=command.help, usage=usage, run=run)


def _handed_on(*words: str) -> Callable[[Repl, str], Awaitable[None]]:
    """Return a deed of the command line; the arguments go along, and no arguments mean what is usual."""
    return lambda repl, argument: repl.lend_to(*words, *_words(argument))


def _group(name: str, usual: str) -> Callable[[Repl, str], Awaitable[None]]:
    return lambda repl, argument: repl.lend_to(name, *(_words(argument) or (usual,)))


def _of_session(*words: str) -> Callable[[Repl, str], Awaitable[None]]:
    return lambda repl, argument: repl.lend_to(*words, repl.session(), *_words(argument))


def _of_run(*words: str) -> Callable[[Repl, str], Awaitable[None]]:
    return lambda repl, argument: repl.lend_to(*words, repl.run(), *_words(argument))


def _words(argument: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(argument))
    except ValueError as error:
        raise UsageError(f"{argument!r} cannot be read: {error}", "quote words as in a shell") from error


def _usage(command: SlashCommand) -> str:
    return f"/{command.name} {command.usage}".rstrip()


_KEYS = (
    "Enter sends, Alt-Enter begins a new line, Tab completes, Ctrl-R searches what you typed before,"
    " Ctrl-X Ctrl-E opens your editor.",
    "While a run goes on: Enter queues, Ctrl-S tells it something, Esc ends a step, Ctrl-C ends the run.",
    "Ctrl-O shows what was folded, Ctrl-L clears the window, Ctrl-D leaves.",
    "@path takes a file along, !command runs your own command, #note remembers something.",
)


def _modes(repl: Repl) -> Iterable[str]:
    return _MODES


def _steps(repl: Repl) -> Iterable[str]:
    return [step.id for step in repl.face.plan.steps]


def _themes(repl: Repl) -> Iterable[str]:
    return THEMES


COMMANDS = (
    SlashCommand(name="help", help="What there is to type.", run=_help),
    SlashCommand(name="model", usage="[NAME]", help="Show or choose the model.", run=_model),
    SlashCommand(name="mode", usage="[MODE]", help="Show or choose when you are asked.", run=_mode, complete=_modes),
    SlashCommand(name="budget", usage="[TOKENS|$USD]", help="Show or set what a run may cost.", run=_budget),
    SlashCommand(name="cost", help="What this session has cost.", run=_cost),
    SlashCommand(name="queue", usage="[clear]", help="Requests that wait.", run=_queue),
    SlashCommand(name="plan", usage="[REQUEST]", help="Show the plan; or plan, edit, then run.", run=_plan),
    SlashCommand(name="steps", help="The steps of the last run.", run=_of_run("runs", "show")),
    SlashCommand(
        name="why", usage="STEP", help="What stands behind a step.", run=_of_run("runs", "why"), complete=_steps
    ),
    SlashCommand(name="context", help="What the next request takes along.", run=_context),
    SlashCommand(name="compact", help="Sum up the session, to make room.", run=_compact),
    SlashCommand(name="tools", usage="[show NAME]", help="What the model may use.", run=_group("tools", "list")),
    SlashCommand(name="rules", usage="[add|rm …]", help="What runs unasked.", run=_group("rules", "list")),
    SlashCommand(name="memory", usage="[add|clear …]", help="What is remembered.", run=_group("memory", "show")),
    SlashCommand(name="sessions", usage="[show|rm …]", help="Your sessions.", run=_group("sessions", "list")),
    SlashCommand(name="diff", help="What this session changed.", run=_of_session("sessions", "diff")),
    SlashCommand(name="undo", help="Take back what this session changed.", run=_of_session("sessions", "undo")),
    SlashCommand(name="redo", help="Take back the last /undo.", run=_redo),
    SlashCommand(name="resume", usage="[RUN]", help="Go on with a run that was cut off.", run=_resume),
    SlashCommand(name="fork", usage="[ID]", help="Go on in a copy of this session.", run=_fork),
    SlashCommand(
        name="export", usage="[-o FILE]", help="Write this session down.", run=_of_session("sessions", "export")
    ),
    SlashCommand(name="search", usage="TEXT", help="Find text in your sessions.", run=_handed_on("sessions", "search")),
    SlashCommand(name="doctor", help="Check that everything is there.", run=_handed_on("doctor")),
    SlashCommand(name="demo", help="See a whole run without a key.", run=_handed_on("demo")),
    SlashCommand(name="clear", help="Begin a new session.", run=_clear),
    SlashCommand(
        name="theme", usage="NAME", help="Colours for a light or a dark ground.", run=_theme, complete=_themes
    ),
    SlashCommand(name="exit", help="Leave.", run=_exit),
)
