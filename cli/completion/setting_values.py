"""Settings as candidates: their names, the values they may hold, profiles and rules."""

from collections.abc import Iterable, Mapping
from typing import get_args, get_origin

from agent.config.load import load_settings
from agent.config.places import config_file
from agent.config.rules import rules_of
from agent.config.user_file import read_user_file
from agent.config.values import slot_at, slots
from agent.model.providers import PROVIDERS
from cli.completion.model_values import models
from cli.completion.values import Asked, FileKind, Source, Value

_MODELS = ("model", "planner_model")
# Flags that are a setting by another name.
_OTHERWISE = {"mode": "approval_mode"}


def _keys(asked: Asked) -> Iterable[Value]:
    yield from (Value(word=name, about=slot.doc) for name, slot in slots().items())
    yield from (Value(word=f"keys.{row.name}", about=f"key for {row.name}") for row in PROVIDERS if row.needs_key)


def _values(asked: Asked) -> Iterable[Value] | FileKind:
    """Return what the setting that was named may hold."""
    return _held_by(asked.first("key"), asked.environ, asked.word)


def _of_flag(asked: Asked) -> Iterable[Value] | FileKind:
    name = asked.parameter.name
    return _held_by(_OTHERWISE.get(name, name), asked.environ, asked.word)


def _held_by(name: str, environ: Mapping[str, str], word: str) -> Iterable[Value] | FileKind:
    if name in _MODELS:
        return models(environ, word)
    slot = slot_at(tuple(name.split(".")))
    kind = slot.kind if slot else None
    if kind is bool:
        return [Value(word="true"), Value(word="false")]
    is_choice = get_origin(kind) is not tuple and all(isinstance(one, str) for one in get_args(kind))
    return [Value(word=one) for one in get_args(kind)] if is_choice else ()


def _assignments(asked: Asked) -> Iterable[Value] | FileKind:
    name, equals, word = asked.word.partition("=")
    if not equals:
        return [Value(word=f"{key.word}=", about=key.about) for key in _keys(asked)]
    found = _held_by(name, asked.environ, word)
    return found if isinstance(found, str) else [Value(word=f"{name}={one.word}", about=one.about) for one in found]


def _profiles(asked: Asked) -> Iterable[Value]:
    profiles = read_user_file(config_file(asked.environ)).profiles
    return (Value(word=name, about=", ".join(leaf.name for leaf in leaves)) for name, leaves in profiles.items())


def _rules(asked: Asked) -> Iterable[Value]:
    rules = rules_of(load_settings(environ=asked.environ).settings)
    return (Value(word=rule.words, about=f"{rule.effect}, {rule.folder or 'everywhere'}") for rule in rules)


VALUES: Mapping[str, Source] = {
    "profile": _profiles,
    "assignments": _assignments,
    "key": _keys,
    "value": _values,
    "backend": _of_flag,
    "approval_mode": _of_flag,
    "mode": _of_flag,
    "replan": _of_flag,
    "on_approval": _of_flag,
    "rules rm words": _rules,
}
