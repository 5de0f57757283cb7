"""Commands that show or override a setting until the REPL exits."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from agent.protocol.commands import SetLimits
from agent.vocabulary.errors import UsageError
from cli.repl.repl import Repl
from cli.repl.slash_commands import Candidate
from cli.repl.state import PLAN_MODE
from cli.screen.colors import THEMES
from cli.screen.format import format_cost, format_count

if TYPE_CHECKING:
    from cli.completion.candidates import CompletionItem

MODES = ("ask", "auto-edit", "plan", "review", "never", "yolo")
MODEL_HINT = "use provider/name, for example openai/gpt-5-mini; Tab lists them"
MODEL_UNSET = "model: none; set one with /model provider/name (Tab lists them)"
WHICH_MODEL = "Which model?"
NO_LIMITS = "no token or cost limit"
APPLIES_NOW = "this also applies to the current run"
_UNITS = {"k": 1_000, "m": 1_000_000}


async def model(repl: Repl, argument: str) -> None:
    """Set the model, or show it and let the user choose another one."""
    if argument:
        _set_model(repl, argument)
        return
    chosen = repl.state.read_settings().settings.model
    repl.print_line(f"model: {chosen}" if chosen else MODEL_UNSET)
    if repl.ui.has_lists:
        known = await asyncio.to_thread(_known_models, repl.state.environ)
        if picked := await repl.ui.pick(WHICH_MODEL, known):
            _set_model(repl, picked)


def _set_model(repl: Repl, name: str) -> None:
    _check_model(repl, name)
    repl.state.override("model", name)
    repl.print_line(f"model: {name}")


def _known_models(environ: Mapping[str, str]) -> list[Candidate]:
    """Return the models of the settings, then those of providers with a key; without any key, all known ones."""
    from cli.completion.model_values import KEY_SET, SCRIPT_PREFIX, model_items

    first = [item for item in _items(model_items(environ, "")) if item.word != SCRIPT_PREFIX]
    providers = [item for item in first if item.word.endswith("/")]
    with_key = [item for item in providers if item.description == KEY_SET]
    found = {item.word: item.description for item in first if item not in providers}
    for provider in with_key or providers:
        for item in _items(model_items(environ, provider.word)):
            found.setdefault(item.word, provider.description)
    return list(found.items())


def _items(found: "Iterable[CompletionItem] | str") -> "list[CompletionItem]":
    return [] if isinstance(found, str) else list(found)


def _check_model(repl: Repl, name: str) -> None:
    """Raise if the name cannot be a model; warn if it may not work."""
    from agent.model.name_check import SCRIPT_PREFIX, check_name

    check = check_name(name, repl.state.read_settings().settings, repl.state.cwd)
    if check.problem:
        raise UsageError(check.problem, "" if name.startswith(SCRIPT_PREFIX) else MODEL_HINT)
    if check.doubt:
        repl.warn(check.doubt)


def mode(repl: Repl, argument: str) -> None:
    """Show or set the approval mode."""
    if argument and argument not in MODES:
        raise UsageError(f"unknown approval mode {argument!r}", f"choose from {', '.join(MODES)}")
    if argument:
        repl.state.set_mode(argument)
        if argument != PLAN_MODE:
            repl.state.used_mode = argument
    repl.print_line(f"approval mode: {repl.state.read_settings().settings.approval_mode}")


def theme(repl: Repl, argument: str) -> None:
    """Show or set the theme."""
    if argument and argument not in THEMES:
        raise UsageError(f"unknown theme {argument!r}", f"choose from {', '.join(THEMES)}")
    repl.paint.theme = argument or repl.paint.theme
    repl.print_line(f"theme: {repl.paint.theme}")


def budget(repl: Repl, argument: str) -> None:
    """Show or set the limits of a run; the current run gets them immediately."""
    for word in argument.split():
        for name, value in _parse_limits(word):
            repl.state.override(name, value)
    settings = repl.state.read_settings().settings
    repl.print_line(_limits_text(settings.max_tokens, settings.max_budget_usd))
    limits = SetLimits(max_tokens=settings.max_tokens, max_budget_usd=settings.max_budget_usd)
    if argument and repl.queue.send(limits):
        repl.print_line(APPLIES_NOW)


def _limits_text(max_tokens: int | None, max_usd: float | None) -> str:
    if not max_tokens and not max_usd:
        return NO_LIMITS
    tokens = f"{format_count(max_tokens)} tokens" if max_tokens else "no token limit"
    return f"limits per run: {tokens}, {format_cost(max_usd) if max_usd else 'no cost limit'}"


def _parse_limits(word: str) -> list[tuple[str, object]]:
    if word == "off":
        return [("max_tokens", None), ("max_budget_usd", None)]
    try:
        if word.startswith("$"):
            return [("max_budget_usd", float(word[1:]))]
        unit = _UNITS.get(word[-1].lower(), 1)
        return [("max_tokens", int(float(word.rstrip("kKmM")) * unit) if unit > 1 else int(word))]
    except ValueError as error:
        hint = "try /budget 200k (tokens) or /budget $1.50 (cost); /budget off restores the limits in your settings"
        raise UsageError(f"{word!r} is not a limit", hint) from error
