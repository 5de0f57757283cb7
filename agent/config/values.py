"""Parse and validate one value against the table of settings: type, limits, known name."""

import types
from collections.abc import Collection, Mapping
from dataclasses import is_dataclass, replace
from functools import cache
from typing import Annotated, Union, get_args, get_origin

from agent.config.origin import KeyPath, SettingValue
from agent.config.secrets import is_secret
from agent.config.settings import MODEL_SETTINGS, Limits, Settings
from agent.vocabulary.errors import ConfigError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, decode, did_you_mean, hints_of

NOT_A_URL = "expected a URL starting with http:// or https://"
_URL_SETTINGS: tuple[KeyPath, ...] = (("api_base",), ("web_reader_url",), ("callback_url",))


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSpec:
    """Type, description and limits of one setting."""

    kind: object
    doc: str = ""
    limits: Limits | None = None
    is_optional: bool = False


def setting_names(cls: type = Settings) -> Collection[str]:
    """Return the names of all settings of a class."""
    return hints_of(cls).keys()


@cache
def setting_spec(name: str, cls: type = Settings) -> SettingSpec | None:
    """Return the spec of a setting, or None if the class has no such setting."""
    hint = hints_of(cls).get(name)
    return None if hint is None else _parse_hint(hint)


def find_setting(path: KeyPath) -> SettingSpec | None:
    """Return the spec of the setting at `path`, or None if there is no such setting."""
    table, path = _table_of(path)
    spec = setting_spec(path[0], table) if path else None
    for part in path[1:]:
        spec = _inner_spec(spec, part) if spec else None
    return spec


def _table_of(path: KeyPath) -> tuple[type, KeyPath]:
    """Return the table of a setting, and its path there."""
    if len(path) < 2 or path[0] != "service":
        return Settings, path
    from agent.config.service_settings import ServiceSettings

    return ServiceSettings, path[1:]


def validate(setting: SettingValue) -> SettingValue:
    """Return the setting with its value parsed, or raise ConfigError naming source, setting and expectation."""
    if setting.path[0] not in setting_names():
        raise ConfigError(
            f"{setting.source}: unknown setting {setting.path[0]}{did_you_mean(setting.path[0], setting_names())}"
        )
    value = _parse_text(setting) if setting.is_text and isinstance(setting.value, str) else setting.value
    table, path = _table_of(setting.path)
    try:
        decoded: object = decode(table, unflatten({path: value}))
    except DecodeError as error:
        detail = (
            f"{setting.name}: expected {type_name(setting.path)}"
            if is_secret(setting.path)
            else str(error).replace("field", "setting")
        )
        raise ConfigError(f"{setting.source}: {detail}") from error
    found = _get_at(decoded, path)
    if setting.is_text and isinstance(found, (int, float)):
        value = found
    elif _is_quoted(value, found):
        raise ConfigError(f"{setting.source}: {setting.name}: expected {type_name(setting.path)}, got text {value!r}")
    _check_limits(setting, value)
    return replace(setting, value=value, is_text=False)


def validate_and_split(setting: SettingValue) -> tuple[SettingValue, ...]:
    """Validate a value; a table given as one text is split into its entries, each validated."""
    validated = validate(setting)
    if not isinstance(validated.value, Mapping):
        return (validated,)
    parts = flatten({setting.path[-1]: validated.value})
    return tuple(
        validate(replace(validated, path=(*setting.path[:-1], *path), value=value)) for path, value in parts.items()
    )


def type_name(path: KeyPath) -> str:
    """Return the type of a setting in words."""
    spec = find_setting(path)
    kind = spec.kind if spec else object
    if (choices := get_args(kind)) and all(isinstance(choice, str) for choice in choices):
        return "one of " + ", ".join(choices)
    if get_origin(kind) is tuple:
        return "a list of texts"
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    return names.get(kind, "a table") if isinstance(kind, type) else "a table"


def unflatten(values: Mapping[KeyPath, object]) -> dict[str, object]:
    """Turn flat values into nested tables."""
    root: dict[str, object] = {}
    for path, value in values.items():
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
    """Turn nested tables into flat values; an empty table remains a value."""
    values: dict[KeyPath, object] = {}
    for key, value in table.items():
        path = (*above, str(key))
        values.update(flatten(value, path) if isinstance(value, Mapping) and value else {path: value})
    return values


def _parse_hint(hint: object) -> SettingSpec:
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    is_union = get_origin(kind) in (Union, types.UnionType)
    inner = [arg for arg in get_args(kind) if arg is not type(None)] if is_union else [kind]
    doc = next((note for note in notes if isinstance(note, str)), "")
    limits = next((note for note in notes if isinstance(note, Limits)), None)
    return SettingSpec(kind=inner[0], doc=doc, limits=limits, is_optional=is_union)


def _inner_spec(spec: SettingSpec, part: str) -> SettingSpec | None:
    if isinstance(spec.kind, type) and is_dataclass(spec.kind):
        return setting_spec(part, spec.kind)
    if get_origin(spec.kind) is not None and issubclass(get_origin(spec.kind) or object, Mapping):
        return SettingSpec(kind=get_args(spec.kind)[1])
    return None


def _parse_text(setting: SettingValue) -> object:
    spec, text = find_setting(setting.path), str(setting.value).strip()
    if spec is None or spec.kind is str:
        return text
    if spec.is_optional and text.lower() == "none":
        return None
    if text[:1] in ("[", "{"):
        return _parse_json(setting, text)
    if get_origin(spec.kind) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _parse_json(setting: SettingValue, text: str) -> object:
    import json

    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(
            f"{setting.source}: {setting.name}: expected {type_name(setting.path)} written as JSON"
        ) from error


def _get_at(value: object, path: KeyPath) -> object:
    for part in path:
        value = value[part] if isinstance(value, Mapping) else getattr(value, part)
    return value


def _is_quoted(raw: object, decoded: object) -> bool:
    """Return whether a file has "8" instead of 8; the decoder accepts that from models, but not here."""
    return isinstance(raw, str) and not isinstance(decoded, str)


def _check_limits(setting: SettingValue, value: object) -> None:
    spec = find_setting(setting.path)
    if spec and spec.limits and value is not None and not spec.limits.allows(float(str(value))):
        raise ConfigError(f"{setting.source}: {setting.name}: expected {spec.limits}, got {value}")
    is_url = setting.path in _URL_SETTINGS or setting.path[0] == "api_bases"
    if is_url and isinstance(value, str) and value and not str(value).startswith(("http://", "https://")):
        raise ConfigError(f"{setting.source}: {setting.name}: {NOT_A_URL}")
    if setting.name in MODEL_SETTINGS and isinstance(value, str) and _is_sentence(value):
        raise ConfigError(f"{setting.source}: {setting.name}: expected provider/name, got {value!r}")


def _is_sentence(model: str) -> bool:
    # The path of a script may contain spaces, the name of a model never does.
    return len(model.split()) > 1 and not model.startswith("script:")
