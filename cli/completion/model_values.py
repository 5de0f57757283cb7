"""Models as candidates: what is set first, then providers, then the models of the provider that was typed."""

from collections.abc import Iterable, Mapping

from agent.config.load import load_settings
from agent.config.user_dirs import config_file
from agent.config.user_file import read_user_file
from agent.model.prices import PriceTable
from agent.model.providers import PROVIDERS, get_provider
from cli.completion.values import CompletionItem, CompletionRequest, CompletionSource, FileKind

SCRIPT_PREFIX = "script:"


def model_items(environ: Mapping[str, str], word: str) -> Iterable[CompletionItem] | FileKind:
    """Return the models that begin so; a script is a file."""
    if word.startswith(SCRIPT_PREFIX):
        return "files"
    provider, slash, _ = word.partition("/")
    known = [CompletionItem(word=name, description="in your settings") for name in _configured_models(environ)]
    if slash:
        names = PriceTable().list_models(provider, get_provider(provider).aliases)
        return [*known, *(CompletionItem(word=f"{provider}/{name}") for name in names)]
    keys = load_settings(environ=environ).settings.keys
    return [
        *known,
        *(
            CompletionItem(word=f"{row.name}/", description=_key_status(row.name, keys, needs_key=row.needs_key))
            for row in PROVIDERS
        ),
        CompletionItem(word=SCRIPT_PREFIX, description="replies written by hand"),
    ]


def _configured_models(environ: Mapping[str, str]) -> list[str]:
    """Return every model the person's settings name."""
    settings = load_settings(environ=environ).settings
    profiles = read_user_file(config_file(environ)).profiles.values()
    named = [leaf.value for leaves in profiles for leaf in leaves if leaf.path in (("model",), ("planner_model",))]
    return [str(name) for name in dict.fromkeys((settings.model, settings.planner_model, *named)) if name]


def _key_status(provider: str, keys: Mapping[str, str], *, needs_key: bool) -> str:
    if not needs_key:
        return "on this machine"
    return "its key is set" if keys.get(provider) else "needs a key"


def _models(asked: CompletionRequest) -> Iterable[CompletionItem] | FileKind:
    return model_items(asked.environ, asked.word)


VALUES: Mapping[str, CompletionSource] = {"model": _models, "planner_model": _models}
