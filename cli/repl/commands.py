"""The slash commands: what the REPL does itself, and what it hands to the command line's own commands."""

import shlex
from collections.abc import Awaitable, Callable, Iterable

from agent.vocabulary.errors import UsageError
from cli.repl.repl import Repl
from cli.repl.slash import SlashCommand
from cli.screen.paint import THEMES
from cli.screen.wording import amount, money

_MODES = ("ask", "auto-edit", "never", "yolo")


def _help(repl: Repl, argument: str) -> None:
    width = max(len(_usage(command)) for command in repl.commands)
    lines = [f"  {_usage(command):<{width}}  {command.help}" for command in repl.commands]
    repl.say("\n".join([*lines, *_KEYS]))


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
    lines = [f"  {number}. {submit.prompt}" for number, submit in enumerate(repl.turns.waiting, 1)]
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


def _handed_on(*words: str) -> Callable[[Repl, str], Awaitable[None]]:
    """Return a deed of the command line; the arguments go along, and no arguments mean what is usual."""
    return lambda repl, argument: repl.lend_to(*words, *_words(argument))


def _group(name: str, usual: str) -> Callable[[Repl, str], Awaitable[None]]:
    return lambda repl, argument: repl.lend_to(name, *(_words(argument) or (usual,)))


def _of_session(*words: str) -> Callable[[Repl, str], Awaitable[None]]:
    return lambda repl, argument: repl.lend_to(*words, repl.session(), *_words(argument))


def _words(argument: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(argument))
    except ValueError as error:
        raise UsageError(f"{argument!r} cannot be read: {error}", "quote words as in a shell") from error


def _usage(command: SlashCommand) -> str:
    return f"/{command.name} {command.usage}".rstrip()


_KEYS = (
    "",
    "  Enter send · Alt-Enter new line · Ctrl-R history · Ctrl-X Ctrl-E editor · Tab complete",
    "  Ctrl-C end the run · Ctrl-O show folded output · Ctrl-D leave",
    "  @path takes a file along · !command runs your own command · #note remembers something",
)


def _modes(repl: Repl) -> Iterable[str]:
    return _MODES


def _themes(repl: Repl) -> Iterable[str]:
    return THEMES


COMMANDS = (
    SlashCommand(name="help", help="What there is to type.", run=_help),
    SlashCommand(name="model", usage="[NAME]", help="Show or choose the model.", run=_model),
    SlashCommand(name="mode", usage="[MODE]", help="Show or choose when you are asked.", run=_mode, complete=_modes),
    SlashCommand(name="budget", usage="[TOKENS|$USD]", help="Show or set what a run may cost.", run=_budget),
    SlashCommand(name="cost", help="What this session has cost.", run=_cost),
    SlashCommand(name="queue", usage="[clear]", help="Requests that wait.", run=_queue),
    SlashCommand(name="tools", usage="[show NAME]", help="What the model may use.", run=_group("tools", "list")),
    SlashCommand(name="rules", usage="[add|rm …]", help="What runs unasked.", run=_group("rules", "list")),
    SlashCommand(name="memory", usage="[add|clear …]", help="What is remembered.", run=_group("memory", "show")),
    SlashCommand(name="sessions", usage="[show|rm …]", help="Your sessions.", run=_group("sessions", "list")),
    SlashCommand(name="diff", help="What this session changed.", run=_of_session("sessions", "diff")),
    SlashCommand(name="undo", help="Take back what this session changed.", run=_of_session("sessions", "undo")),
    SlashCommand(name="doctor", help="Check that everything is there.", run=_handed_on("doctor")),
    SlashCommand(name="demo", help="See a whole run without a key.", run=_handed_on("demo")),
    SlashCommand(name="clear", help="Begin a new session.", run=_clear),
    SlashCommand(
        name="theme", usage="NAME", help="Colours for a light or a dark ground.", run=_theme, complete=_themes
    ),
    SlashCommand(name="exit", help="Leave.", run=_exit),
)
