"""Commands that show or choose a setting for the rest of the sitting."""

from pathlib import Path

from agent.config.user_dirs import data_dir
from agent.memory.excerpt import excerpt
from agent.memory.memory_file import MemoryFile
from agent.model.prices import PriceTable
from agent.protocol.commands import SetLimits
from agent.sessions.store import SessionStore
from agent.sessions.views.session_summary import SessionRecord, read_session
from agent.vocabulary.errors import UsageError
from agent.workspace.project_notes import read_notes
from agent.workspace.request_context import HISTORY_CHARS, history
from cli.repl.repl import Repl
from cli.repl.state import ReplState
from cli.screen.colors import THEMES
from cli.screen.format import format_cost, format_count

MODES = ("ask", "auto-edit", "never", "yolo")
_SCRIPT = "script:"
_UNITS = {"k": 1_000, "m": 1_000_000}


def model(repl: Repl, argument: str) -> None:
    """Show or choose the model."""
    if argument:
        _check_model(repl, argument)
        repl.state.override("model", argument)
    chosen = repl.state.read_settings().settings.model
    repl.print_line(f"model: {chosen}" if chosen else "model: none; /model provider/name chooses one, Tab lists them")


def _check_model(repl: Repl, name: str) -> None:
    """Refuse what cannot be a model, and warn of what may not work."""
    from agent.model.faults import ModelFault
    from agent.model.prices import PriceTable
    from agent.model.providers import PROVIDERS, get_provider, resolve
    from tooling.contract.json_codec import did_you_mean

    settings = repl.state.read_settings().settings
    if name.startswith(_SCRIPT):
        if not (repl.state.cwd / Path(name.removeprefix(_SCRIPT))).is_file():
            raise UsageError(f"there is no script {name.removeprefix(_SCRIPT)}")
        return
    try:
        endpoint = resolve(name, settings)
    except ModelFault as fault:
        repl.warn(str(fault))
        return
    if " " in name or not (endpoint.provider and endpoint.model):
        known = "" if "/" in name else did_you_mean(name, [row.name for row in PROVIDERS])
        raise UsageError(f"{name!r} is no model{known}", "provider/name, such as openai/gpt-5-mini; Tab lists them")
    if endpoint.wire == "litellm" and not PriceTable().list_models(endpoint.provider):
        known = did_you_mean(endpoint.provider, [row.name for row in PROVIDERS])
        repl.warn(f"there is no known provider {endpoint.provider!r}{known}")
        return
    models = PriceTable().list_models(endpoint.provider, get_provider(endpoint.provider).aliases)
    if models and not settings.api_base and endpoint.model.rpartition("/")[2] not in {*models, endpoint.model}:
        repl.warn(f"{endpoint.provider} is not known to have {endpoint.model}")


def mode(repl: Repl, argument: str) -> None:
    """Show or choose when the person is asked."""
    if argument and argument not in MODES:
        raise UsageError(f"there is no mode {argument!r}", f"one of {', '.join(MODES)}")
    if argument:
        repl.state.override("approval_mode", argument)
    repl.print_line(f"approval mode: {repl.state.read_settings().settings.approval_mode}")


def theme(repl: Repl, argument: str) -> None:
    """Show or choose the colours."""
    if argument and argument not in THEMES:
        raise UsageError(f"there is no theme {argument!r}", f"one of {', '.join(THEMES)}")
    repl.paint.theme = argument or repl.paint.theme
    repl.print_line(f"theme: {repl.paint.theme}")


def budget(repl: Repl, argument: str) -> None:
    """Show or set what a run may cost; a run that is going on heeds it at once."""
    for word in argument.split():
        for name, value in _parse_limits(word):
            repl.state.override(name, value)
    settings = repl.state.read_settings().settings
    tokens = format_count(settings.max_tokens) if settings.max_tokens else "no limit"
    usd = format_cost(settings.max_budget_usd) if settings.max_budget_usd else "no limit"
    repl.print_line(f"a run may cost: {tokens} of tokens, {usd} of money")
    limits = SetLimits(max_tokens=settings.max_tokens, max_budget_usd=settings.max_budget_usd)
    if argument and repl.queue.send(limits):
        repl.print_line("this holds for the run that is going on, too")


def _parse_limits(word: str) -> list[tuple[str, object]]:
    if word == "off":
        return [("max_tokens", None), ("max_budget_usd", None)]
    try:
        if word.startswith("$"):
            return [("max_budget_usd", float(word[1:]))]
        unit = _UNITS.get(word[-1].lower(), 1)
        return [("max_tokens", int(float(word.rstrip("kKmM")) * unit) if unit > 1 else int(word))]
    except ValueError as error:
        hint = "/budget 200k for tokens, /budget $1.50 for money, /budget off for the limits of your settings"
        raise UsageError(f"{word!r} is no limit", hint) from error


_CHARS_PER_TOKEN = 4


def context_lines(place: ReplState, session_id: str | None, overheard: str) -> list[str]:
    """Return the parts with their sizes, the whole, and how much of it the model can read."""
    store = SessionStore(data_dir(place.environ))
    session = read_session(store.find(session_id)) if session_id else SessionRecord(id="")
    settings = place.read_settings().settings
    notes = read_notes(place.cwd) if settings.project_notes else []
    memory = excerpt(MemoryFile(data_dir(place.environ)).read()) if settings.memory else ""
    asked = "1 request" if session.run_count == 1 else f"{session.run_count} requests"
    parts = [
        ("history", len(history(session)), f"at most {format_count(HISTORY_CHARS)}, {asked} so far"),
        ("memory", len(memory), ""),
        *(("notes", len(note.text), f"in {note.path}") for note in notes),
        *([("output", len(overheard), "of your own commands")] if overheard else []),
    ]
    whole = sum(size for _, size, _ in parts)
    rest = f"about {format_count(whole // _CHARS_PER_TOKEN)} tokens{_window_size_text(settings.model)}"
    return [
        f"  {name:<7}  {format_count(size):>5} characters{more and ', '}{more}"
        for name, size, more in (*parts, ("in all", whole, rest))
    ]


def _window_size_text(model: str) -> str:
    size = PriceTable().context_size(model) if model else None
    return f" of the {format_count(size)} the model can read" if size else ""
