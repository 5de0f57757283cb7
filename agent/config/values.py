"""One value against the table of settings: from text to data, the right type, possible at all."""

import types
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from functools import cache
from typing import Annotated, Union, get_args, get_origin, get_type_hints

from agent.config.origin import KeyPath, SettingValue
from agent.config.secrets import is_secret
from agent.config.settings import Limits, Settings
from agent.vocabulary.errors import ConfigError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, decode, did_you_mean

_URL_SETTINGS: tuple[KeyPath, ...] = (("api_base",), ("web_reader_url",))


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSpec:
    """What the table says of one setting."""

    kind: object
    doc: str = ""
    limits: Limits | None = None
    is_optional: bool = False


@cache
def setting_specs(cls: type = Settings) -> Mapping[str, SettingSpec]:
    """Return the settings of a class by name."""
    return {name: _parse_hint(hint) for name, hint in get_type_hints(cls, include_extras=True).items()}


def find_setting(path: KeyPath) -> SettingSpec | None:
    """Return what the table says of the setting at `path`, or None when there is no such setting."""
    slot = setting_specs().get(path[0]) if path else None
    for part in path[1:]:
        slot = _inner_spec(slot, part) if slot else None
    return slot


def validate(leaf: SettingValue) -> SettingValue:
    """Return the leaf with its value as data, or raise ConfigError naming place, setting and expectation."""
    if leaf.path[0] not in setting_specs():
        raise ConfigError(f"{leaf.source}: unknown setting {leaf.path[0]}{did_you_mean(leaf.path[0], setting_specs())}")
    value = _parse_text(leaf) if leaf.is_text and isinstance(leaf.value, str) else leaf.value
    try:
        decoded = decode(Settings, unflatten({leaf.path: value}))
    except DecodeError as error:
        detail = (
            f"{leaf.name}: expected {type_name(leaf.path)}"
            if is_secret(leaf.path)
            else str(error).replace("field", "setting")
        )
        raise ConfigError(f"{leaf.source}: {detail}") from error
    found = _get_at(decoded, leaf.path)
    if leaf.is_text and isinstance(found, (int, float)):
        value = found
    elif _is_quoted(value, found):
        raise ConfigError(f"{leaf.source}: {leaf.name}: expected {type_name(leaf.path)}, got text {value!r}")
    _check_limits(leaf, value)
    return replace(leaf, value=value, is_text=False)


def validate_and_split(leaf: SettingValue) -> tuple[SettingValue, ...]:
    """Return a checked value as leaves: a table given in one text comes apart, and each part is checked."""
    whole = validate(leaf)
    if not isinstance(whole.value, Mapping):
        return (whole,)
    parts = flatten({leaf.path[-1]: whole.value})
    return tuple(validate(replace(whole, path=(*leaf.path[:-1], *path), value=value)) for path, value in parts.items())


def type_name(path: KeyPath) -> str:
    """Return the setting's type in words."""
    slot = find_setting(path)
    kind = slot.kind if slot else object
    if (choices := get_args(kind)) and all(isinstance(choice, str) for choice in choices):
        return "one of " + ", ".join(choices)
    if get_origin(kind) is tuple:
        return "a list of texts"
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    return names.get(kind, "a table") if isinstance(kind, type) else "a table"


def unflatten(leaves: Mapping[KeyPath, object]) -> dict[str, object]:
    """Return flat values as nested tables."""
    root: dict[str, object] = {}
    for path, value in leaves.items():
        table = root
        for part in path[:-1]:
            inner = table.setdefault(part, {})
            if not isinstance(inner, dict):
                inner = table[part] = {}
            table = inner
        if value == {} and isinstance(value, dict):
            table.setdefault(path[-1], {})
        else:
            table[path[-1]] = value
    return root


def flatten(table: Mapping[str, object], above: KeyPath = ()) -> dict[KeyPath, object]:
    """Return nested tables as flat values; an empty table stays a value of its own."""
    leaves: dict[KeyPath, object] = {}
    for key, value in table.items():
        path = (*above, str(key))
        leaves.update(flatten(value, path) if isinstance(value, Mapping) and value else {path: value})
    return leaves


def _parse_hint(hint: object) -> SettingSpec:
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    is_union = get_origin(kind) in (Union, types.UnionType)
    inner = [arg for arg in get_args(kind) if arg is not type(None)] if is_union else [kind]
    doc = next((note for note in notes if isinstance(note, str)), "")
    limits = next((note for note in notes if isinstance(note, Limits)), None)
    return SettingSpec(kind=inner[0], doc=doc, limits=limits, is_optional=is_union)


def _inner_spec(slot: SettingSpec, part: str) -> SettingSpec | None:
    if isinstance(slot.kind, type) and is_dataclass(slot.kind):
        return setting_specs(slot.kind).get(part)
    if get_origin(slot.kind) is not None and issubclass(get_origin(slot.kind) or object, Mapping):
        return SettingSpec(kind=get_args(slot.kind)[1])
    return None


def _parse_text(leaf: SettingValue) -> object:
    slot, text = find_setting(leaf.path), str(leaf.value).strip()
    if slot is None or slot.kind is str:
        return text
    if slot.is_optional and text.lower() == "none":
        return None
    if text[:1] in ("[", "{"):
        return _parse_json(leaf, text)
    if get_origin(slot.kind) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _parse_json(leaf: SettingValue, text: str) -> object:
    import json

    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{leaf.source}: {leaf.name}: expected {type_name(leaf.path)} written as JSON") from error


def _get_at(value: object, path: KeyPath) -> object:
    for part in path:
        value = value[part] if isinstance(value, Mapping) else getattr(value, part)
    return value


def _is_quoted(raw: object, decoded: object) -> bool:
    """Say whether a file holds "8" where 8 is meant; the decoder forgives that to models, files are strict."""
    return isinstance(raw, str) and not isinstance(decoded, str)


def _check_limits(leaf: SettingValue, value: object) -> None:
    slot = find_setting(leaf.path)
    if slot and slot.limits and value is not None and not slot.limits.allows(float(str(value))):
        raise ConfigError(f"{leaf.source}: {leaf.name}: expected {slot.limits}, got {value}")
    if leaf.path in _URL_SETTINGS and value and not str(value).startswith(("http://", "https://")):
        raise ConfigError(f"{leaf.source}: {leaf.name}: expected an address beginning with http:// or https://")
