"""Completes settings, their values, profiles and rules."""

from collections.abc import Iterable, Mapping
from typing import get_args, get_origin

from agent.config.load import load_settings
from agent.config.profiles import BUILTIN_PROFILES, builtin_values
from agent.config.rules import all_rules
from agent.config.settings import MODEL_SETTINGS
from agent.config.user_dirs import config_file
from agent.config.user_file import read_user_file
from agent.config.values import find_setting, setting_names
from agent.model.providers import PROVIDERS
from cli.completion.candidates import CompletionItem, CompletionRequest, CompletionSource, FileKind
from cli.completion.model_values import model_items

# Flags whose name differs from that of their setting.
_FLAG_SETTINGS = {"mode": "approval_mode"}


def _keys(request: CompletionRequest) -> Iterable[CompletionItem]:
    specs = ((name, find_setting((name,))) for name in setting_names())
    yield from (CompletionItem(word=name, description=spec.doc) for name, spec in specs if spec)
    yield from (
        CompletionItem(word=f"keys.{row.name}", description=f"key for {row.name}") for row in PROVIDERS if row.needs_key
    )


def _values(request: CompletionRequest) -> Iterable[CompletionItem] | FileKind:
    """Return the values of the setting given before."""
    return _setting_values(request.first("key"), request.environ, request.word)


def _flag_values(request: CompletionRequest) -> Iterable[CompletionItem] | FileKind:
    name = request.parameter.name
    return _setting_values(_FLAG_SETTINGS.get(name, name), request.environ, request.word)


def _setting_values(name: str, environ: Mapping[str, str], word: str) -> Iterable[CompletionItem] | FileKind:
    if name in MODEL_SETTINGS:
        return model_items(environ, word)
    spec = find_setting(tuple(name.split(".")))
    kind = spec.kind if spec else None
    if kind is bool:
        return [CompletionItem(word="true"), CompletionItem(word="false")]
    is_choice = get_origin(kind) is not tuple and all(isinstance(choice, str) for choice in get_args(kind))
    return [CompletionItem(word=choice) for choice in get_args(kind)] if is_choice else ()


def _assignments(request: CompletionRequest) -> Iterable[CompletionItem] | FileKind:
    name, equals, word = request.word.partition("=")
    if not equals:
        return [CompletionItem(word=f"{key.word}=", description=key.description) for key in _keys(request)]
    values = _setting_values(name, request.environ, word)
    if isinstance(values, str):
        return values
    return [CompletionItem(word=f"{name}={value.word}", description=value.description) for value in values]


def _profiles(request: CompletionRequest) -> Iterable[CompletionItem]:
    built_in = {name: builtin_values(name) for name in BUILTIN_PROFILES}
    profiles = built_in | dict(read_user_file(config_file(request.environ)).profiles)
    return (
        CompletionItem(word=name, description=", ".join(leaf.name for leaf in leaves))
        for name, leaves in profiles.items()
    )


def _rules(request: CompletionRequest) -> Iterable[CompletionItem]:
    rules = all_rules(load_settings(environ=request.environ).settings)
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
    "reasoning": _flag_values,
    "replan": _flag_values,
    "on_approval": _flag_values,
    "rules rm words": _rules,
}
