"""The slash commands: what the REPL does itself, and what it hands to the command line's own commands."""

import json
import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence

from agent.backends.catalogue import OfferedCommand
from agent.config.places import data_dir
from agent.sessions.copying import fork
from agent.sessions.fold import read_session
from agent.sessions.store import SessionStore
from agent.sessions.undo_log import UNDO
from agent.vocabulary.errors import UsageError
from agent.workspace.materials import COMPACT_REQUEST
from cli.columns import rows
from cli.repl.context_page import context_lines
from cli.repl.own_files import OwnCommand
from cli.repl.repl import Repl
from cli.repl.slash import Candidate, SlashCommand, unknown
from cli.screen.paint import THEMES, clipped
from cli.screen.wording import amount, money

_MODES = ("ask", "auto-edit", "never", "yolo")


async def _help(repl: Repl, argument: str) -> None:
    name = argument.removeprefix("/")
    if all(command.name != name for command in repl.commands):
        await repl.loaded()
    commands = [command for command in repl.commands if not name or command.name == name]
    if not commands:
        raise UsageError(unknown(name, repl.commands))
    lines = rows([(f"  {_usage(command)}", command.help) for command in commands], repl.face.columns)
    repl.say("\n".join([*lines, *([] if name else ["", *(f"  {keys}" for keys in KEYS)])]))


def _model(repl: Repl, argument: str) -> None:
    if argument:
        repl.place.choose("model", argument)
    repl.say(f"model: {repl.place.loaded().settings.model or 'none'}")


def _mode(repl: Repl, argument: str) -> None:
    if argument and argument not in _MODES:
        raise UsageError(f"there is no mode {argument!r}", f"one of {', '.join(_MODES)}")
    if argument:
        repl.place.choose("approval_mode", argument)
    repl.say(f"approval mode: {repl.place.loaded().settings.approval_mode}")


def _budget(repl: Repl, argument: str) -> None:
    if argument:
        repl.place.choose(*_limit(argument))
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
    if argument not in ("", "clear"):
        raise UsageError(f"the queue cannot {argument!r}", "/queue shows it, /queue clear drops what waits")
    if argument:
        repl.turns.clear()
    room = repl.face.columns - 6
    lines = [f"  {number}. {clipped(turn.submit.prompt, room)}" for number, turn in enumerate(repl.turns.waiting, 1)]
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
        lines = repl.face.plan.lines(repl.face.columns)
        repl.face.say("\n".join(lines) or "there is no plan yet")


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
        usage=own.usage or "[TEXT]",
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


KEYS = (
    "Enter sends, Alt-Enter begins a new line, Tab completes, Ctrl-R searches what you typed before,"
    " Ctrl-X Ctrl-E opens your editor.",
    "While a run goes on: Enter queues, Ctrl-S tells it something, Esc ends a step, Ctrl-C ends the run.",
    "Ctrl-O shows what was folded, Ctrl-L clears the window, Ctrl-D leaves.",
    "@path takes a file along, !command runs your own command, #note remembers something.",
)


def _one_of(*words: str) -> Callable[[Repl, Sequence[str]], Iterable[Candidate]]:
    return lambda repl, typed: [(word, "") for word in words] if len(typed) == 1 else ()


def _names(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
    return [(command.name, command.help) for command in repl.commands] if len(typed) == 1 else ()


def _steps(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
    return [(step.id, step.title) for step in repl.face.plan.steps] if len(typed) == 1 else ()


def _as_in(*words: str) -> Callable[[Repl, Sequence[str]], Iterable[Candidate]]:
    """Return what the command line itself would offer in this place."""

    def complete(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
        from cli.completion.answer import reply_to

        return [(value.word, value.about) for value in reply_to([*words, *typed]).values]

    return complete


COMMANDS = (
    SlashCommand(name="help", usage="[COMMAND]", help="What there is to type.", run=_help, complete=_names),
    SlashCommand(
        name="model", usage="[NAME]", help="Show or choose the model.", run=_model, complete=_as_in("run", "--model")
    ),
    SlashCommand(
        name="mode", usage="[MODE]", help="Show or choose when you are asked.", run=_mode, complete=_one_of(*_MODES)
    ),
    SlashCommand(name="budget", usage="[TOKENS|$USD]", help="Show or set what a run may cost.", run=_budget),
    SlashCommand(name="cost", help="What this session has cost.", run=_cost),
    SlashCommand(name="queue", usage="[clear]", help="Requests that wait.", run=_queue, complete=_one_of("clear")),
    SlashCommand(name="plan", usage="[REQUEST]", help="Show the plan; or plan, edit, then run.", run=_plan),
    SlashCommand(
        name="steps",
        usage="[FLAGS]",
        help="The steps of the last run.",
        run=_of_run("runs", "show"),
        complete=_as_in("runs", "show", "_"),
    ),
    SlashCommand(
        name="why", usage="STEP", help="What stands behind a step.", run=_of_run("runs", "why"), complete=_steps
    ),
    SlashCommand(name="context", help="What the next request takes along.", run=_context),
    SlashCommand(name="compact", help="Sum up the session, to make room.", run=_compact),
    SlashCommand(
        name="tools",
        usage="[show NAME]",
        help="What the model may use.",
        run=_group("tools", "list"),
        complete=_as_in("tools"),
    ),
    SlashCommand(
        name="rules",
        usage="[add|rm …]",
        help="What runs unasked.",
        run=_group("rules", "list"),
        complete=_as_in("rules"),
    ),
    SlashCommand(
        name="memory",
        usage="[add|clear …]",
        help="What is remembered.",
        run=_group("memory", "show"),
        complete=_as_in("memory"),
    ),
    SlashCommand(
        name="sessions",
        usage="[show|rm …]",
        help="Your sessions.",
        run=_group("sessions", "list"),
        complete=_as_in("sessions"),
    ),
    SlashCommand(
        name="diff",
        usage="[FLAGS]",
        help="What this session changed.",
        run=_of_session("sessions", "diff"),
        complete=_as_in("sessions", "diff", "_"),
    ),
    SlashCommand(
        name="undo",
        usage="[FLAGS]",
        help="Take back what this session changed.",
        run=_of_session("sessions", "undo"),
        complete=_as_in("sessions", "undo", "_"),
    ),
    SlashCommand(
        name="redo",
        usage="[FLAGS]",
        help="Take back the last /undo.",
        run=_redo,
        complete=_as_in("sessions", "undo", "_"),
    ),
    SlashCommand(
        name="resume", usage="[RUN]", help="Go on with a run that was cut off.", run=_resume, complete=_as_in("resume")
    ),
    SlashCommand(name="fork", usage="[ID]", help="Go on in a copy of this session.", run=_fork),
    SlashCommand(
        name="export",
        usage="[-o FILE]",
        help="Write this session down.",
        run=_of_session("sessions", "export"),
        complete=_as_in("sessions", "export", "_"),
    ),
    SlashCommand(
        name="search",
        usage="TEXT",
        help="Find text in your sessions.",
        run=_handed_on("sessions", "search"),
        complete=_as_in("sessions", "search"),
    ),
    SlashCommand(
        name="doctor",
        usage="[FLAGS]",
        help="Check that everything is there.",
        run=_handed_on("doctor"),
        complete=_as_in("doctor"),
    ),
    SlashCommand(
        name="demo",
        usage="[FLAGS]",
        help="See a whole run without a key.",
        run=_handed_on("demo"),
        complete=_as_in("demo"),
    ),
    SlashCommand(name="clear", help="Begin a new session.", run=_clear),
    SlashCommand(
        name="theme", usage="NAME", help="Colours for a light or a dark ground.", run=_theme, complete=_one_of(*THEMES)
    ),
    SlashCommand(name="exit", help="Leave.", run=_exit),
)
