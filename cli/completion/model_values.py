"""Completes models: configured ones first, then providers, then the models of a typed provider."""

from collections.abc import Iterable, Mapping

from agent.config.load import load_settings
from agent.config.settings import MODEL_SETTINGS
from agent.config.user_dirs import config_file
from agent.config.user_file import read_user_file
from agent.model.prices import PriceTable
from agent.model.providers import PROVIDERS, get_provider
from cli.completion.candidates import CompletionItem, CompletionRequest, CompletionSource, FileKind
from tooling.contract.lazy_pattern import lazy_pattern

SCRIPT_PREFIX = "script:"
# Prefix of entries with prices of fine-tuned models, whose own names are longer.
_FINE_TUNED = "ft:"
_DATE = lazy_pattern(r"-(?:\d{4}-\d\d-\d\d|\d{8}|\d{4})(?!\d)")
# Not the size of a model, such as 20b.
_NUMBER = lazy_pattern(r"\d+(?![\dbBm])")
_SPECIAL = lazy_pattern(r"audio|realtime|search|research|computer-use|image|embed|container|preview|guard|vision")
LOCAL, KEY_SET, NEEDS_KEY = "on this machine", "key is set", "needs a key"


def model_items(environ: Mapping[str, str], word: str) -> Iterable[CompletionItem] | FileKind:
    """Return the model candidates for a partly typed word; a script is a file."""
    if word.startswith(SCRIPT_PREFIX):
        return "files"
    provider, slash, _ = word.partition("/")
    configured = [CompletionItem(word=name, description="in your settings") for name in _configured_models(environ)]
    if slash:
        names = PriceTable().list_models(provider, get_provider(provider).aliases)
        return [*configured, *(CompletionItem(word=f"{provider}/{name}") for name in sort_models(names))]
    keys = load_settings(environ=environ).settings.keys
    return [
        *configured,
        *(
            CompletionItem(word=f"{row.name}/", description=_key_status(row.name, keys, needs_key=row.needs_key))
            for row in PROVIDERS
        ),
        CompletionItem(word=SCRIPT_PREFIX, description="scripted replies from a file"),
    ]


def sort_models(names: Iterable[str]) -> list[str]:
    """Sort models for a list: newer versions first, then dated ones, then special-purpose ones."""

    def key(name: str) -> tuple[bool, bool, list[int]]:
        version = [-int(number) for number in _NUMBER.findall(_DATE.sub("", name))[:2]]
        # A minor version is newer than none.
        return bool(_SPECIAL.search(name)), bool(_DATE.search(name)), [*version, 0, 0][:2]

    return sorted((name for name in names if not name.startswith(_FINE_TUNED)), key=key)


def _configured_models(environ: Mapping[str, str]) -> list[str]:
    """Return every model that the user's settings and profiles name."""
    settings = load_settings(environ=environ).settings
    profiles = read_user_file(config_file(environ)).profiles.values()
    in_profiles = [
        leaf.value for leaves in profiles for leaf in leaves if leaf.path in [(name,) for name in MODEL_SETTINGS]
    ]
    configured = [getattr(settings, name) for name in MODEL_SETTINGS]
    return [str(name) for name in dict.fromkeys((*configured, *in_profiles)) if name]


def _key_status(provider: str, keys: Mapping[str, str], *, needs_key: bool) -> str:
    if not needs_key:
        return LOCAL
    return KEY_SET if keys.get(provider) else NEEDS_KEY


def _models(request: CompletionRequest) -> Iterable[CompletionItem] | FileKind:
    return model_items(request.environ, request.word)


VALUES: Mapping[str, CompletionSource] = {"model": _models, "planner_model": _models}
