"""Models as candidates: what is set first, then providers, then the models of the provider that was typed."""

from collections.abc import Iterable, Mapping

from agent.config.load import load_settings
from agent.config.places import config_file
from agent.config.user_file import read_user_file
from agent.model.prices import PriceTable
from agent.model.providers import PROVIDERS, provider_named
from cli.completion.values import Asked, FileKind, Source, Value

SCRIPT = "script:"


def models(environ: Mapping[str, str], word: str) -> Iterable[Value] | FileKind:
    """Return the models that begin so; a script is a file."""
    if word.startswith(SCRIPT):
        return "files"
    provider, slash, _ = word.partition("/")
    known = [Value(word=name, about="in your settings") for name in _chosen(environ)]
    if slash:
        names = PriceTable().models_of(provider, provider_named(provider).aliases)
        return [*known, *(Value(word=f"{provider}/{name}") for name in names)]
    keys = load_settings(environ=environ).settings.keys
    return [
        *known,
        *(Value(word=f"{row.name}/", about=_state(row.name, keys, needs_key=row.needs_key)) for row in PROVIDERS),
        Value(word=SCRIPT, about="replies written by hand"),
    ]


def _chosen(environ: Mapping[str, str]) -> list[str]:
    """Return every model the person's settings name."""
    settings = load_settings(environ=environ).settings
    profiles = read_user_file(config_file(environ)).profiles.values()
    named = [leaf.value for leaves in profiles for leaf in leaves if leaf.path in (("model",), ("planner_model",))]
    return [str(name) for name in dict.fromkeys((settings.model, settings.planner_model, *named)) if name]


def _state(provider: str, keys: Mapping[str, str], *, needs_key: bool) -> str:
    if not needs_key:
        return "on this machine"
    return "its key is set" if keys.get(provider) else "needs a key"


def _models(asked: Asked) -> Iterable[Value] | FileKind:
    return models(asked.environ, asked.word)


VALUES: Mapping[str, Source] = {"model": _models, "planner_model": _models}
