"""Settings as candidates: their names, the values they may hold, profiles and rules."""

from collections.abc import Iterable, Mapping
from typing import get_args, get_origin

from agent.config.load import load_settings
from agent.config.rules import all_rules
from agent.config.user_dirs import config_file
from agent.config.user_file import read_user_file
from agent.config.values import find_setting, setting_specs
from agent.model.providers import PROVIDERS
from cli.completion.model_values import model_items
from cli.completion.values import CompletionItem, CompletionRequest, CompletionSource, FileKind

_MODELS = ("model", "planner_model")
# Flags that are a setting by another name.
_FLAG_SETTINGS = {"mode": "approval_mode"}


def _keys(asked: CompletionRequest) -> Iterable[CompletionItem]:
    yield from (CompletionItem(word=name, description=slot.doc) for name, slot in setting_specs().items())
    yield from (
        CompletionItem(word=f"keys.{row.name}", description=f"key for {row.name}") for row in PROVIDERS if row.needs_key
    )


def _values(asked: CompletionRequest) -> Iterable[CompletionItem] | FileKind:
    """Return what the setting that was named may hold."""
    return _setting_values(asked.first("key"), asked.environ, asked.word)


def _flag_values(asked: CompletionRequest) -> Iterable[CompletionItem] | FileKind:
    name = asked.parameter.name
    return _setting_values(_FLAG_SETTINGS.get(name, name), asked.environ, asked.word)


def _setting_values(name: str, environ: Mapping[str, str], word: str) -> Iterable[CompletionItem] | FileKind:
    if name in _MODELS:
        return model_items(environ, word)
    slot = find_setting(tuple(name.split(".")))
    kind = slot.kind if slot else None
    if kind is bool:
        return [CompletionItem(word="true"), CompletionItem(word="false")]
    is_choice = get_origin(kind) is not tuple and all(isinstance(one, str) for one in get_args(kind))
    return [CompletionItem(word=one) for one in get_args(kind)] if is_choice else ()


def _assignments(asked: CompletionRequest) -> Iterable[CompletionItem] | FileKind:
    name, equals, word = asked.word.partition("=")
    if not equals:
        return [CompletionItem(word=f"{key.word}=", description=key.description) for key in _keys(asked)]
    found = _setting_values(name, asked.environ, word)
    return (
        found
        if isinstance(found, str)
        else [CompletionItem(word=f"{name}={one.word}", description=one.description) for one in found]
    )


def _profiles(asked: CompletionRequest) -> Iterable[CompletionItem]:
    profiles = read_user_file(config_file(asked.environ)).profiles
    return (
        CompletionItem(word=name, description=", ".join(leaf.name for leaf in leaves))
        for name, leaves in profiles.items()
    )


def _rules(asked: CompletionRequest) -> Iterable[CompletionItem]:
    rules = all_rules(load_settings(environ=asked.environ).settings)
    return (
        CompletionItem(word=rule.words, description=f"{rule.effect}, {rule.folder or 'everywhere'}") for rule in rules
    )


VALUES: Mapping[str, CompletionSource] = {
    "profile": _profiles,
    "assignments": _assignments,
    "key": _keys,
    "value": _values,
    "backend": _flag_values,
    "approval_mode": _flag_values,
    "mode": _flag_values,
    "replan": _flag_values,
    "on_approval": _flag_values,
    "rules rm words": _rules,
}
