"""One value against the table of settings: from text to data, the right type, possible at all."""

import types
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from functools import cache
from typing import Annotated, Union, get_args, get_origin, get_type_hints

from agent.config.origin import KeyPath, Leaf
from agent.config.secrets import is_secret
from agent.config.settings import Limits, Settings
from agent.vocabulary.errors import ConfigError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import ShapeError, decode, nearest

_ADDRESSES: tuple[KeyPath, ...] = (("api_base",), ("web_reader_url",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """What the table says of one setting."""

    kind: object
    doc: str = ""
    limits: Limits | None = None
    is_optional: bool = False


@cache
def slots(cls: type = Settings) -> Mapping[str, Slot]:
    """Return the settings of a class by name."""
    return {name: _slot(hint) for name, hint in get_type_hints(cls, include_extras=True).items()}


def slot_at(path: KeyPath) -> Slot | None:
    """Return what the table says of the setting at `path`, or None when there is no such setting."""
    slot = slots().get(path[0]) if path else None
    for part in path[1:]:
        slot = _inner(slot, part) if slot else None
    return slot


def checked(leaf: Leaf) -> Leaf:
    """Return the leaf with its value as data, or raise ConfigError naming place, setting and expectation."""
    if leaf.path[0] not in slots():
        raise ConfigError(f"{leaf.place}: unknown setting {leaf.path[0]}{nearest(leaf.path[0], slots())}")
    value = _from_text(leaf) if leaf.is_text and isinstance(leaf.value, str) else leaf.value
    try:
        decoded = decode(Settings, nested({leaf.path: value}))
    except ShapeError as error:
        detail = (
            f"{leaf.name}: expected {kind_name(leaf.path)}"
            if is_secret(leaf.path)
            else str(error).replace("field", "setting")
        )
        raise ConfigError(f"{leaf.place}: {detail}") from error
    found = _at(decoded, leaf.path)
    if leaf.is_text and isinstance(found, (int, float)):
        value = found
    elif _is_quoted(value, found):
        raise ConfigError(f"{leaf.place}: {leaf.name}: expected {kind_name(leaf.path)}, got text {value!r}")
    _refuse_impossible(leaf, value)
    return replace(leaf, value=value, is_text=False)


def checked_leaves(leaf: Leaf) -> tuple[Leaf, ...]:
    """Return a checked value as leaves: a table given in one text comes apart, and each part is checked."""
    whole = checked(leaf)
    if not isinstance(whole.value, Mapping):
        return (whole,)
    parts = flat({leaf.path[-1]: whole.value})
    return tuple(checked(replace(whole, path=(*leaf.path[:-1], *path), value=value)) for path, value in parts.items())


def kind_name(path: KeyPath) -> str:
    """Return the setting's type in words."""
    slot = slot_at(path)
    kind = slot.kind if slot else object
    if (choices := get_args(kind)) and all(isinstance(choice, str) for choice in choices):
        return "one of " + ", ".join(choices)
    if get_origin(kind) is tuple:
        return "a list of texts"
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    return names.get(kind, "a table") if isinstance(kind, type) else "a table"


def nested(leaves: Mapping[KeyPath, object]) -> dict[str, object]:
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


def flat(table: Mapping[str, object], above: KeyPath = ()) -> dict[KeyPath, object]:
    """Return nested tables as flat values; an empty table stays a value of its own."""
    leaves: dict[KeyPath, object] = {}
    for key, value in table.items():
        path = (*above, str(key))
        leaves.update(flat(value, path) if isinstance(value, Mapping) and value else {path: value})
    return leaves


def _slot(hint: object) -> Slot:
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    is_union = get_origin(kind) in (Union, types.UnionType)
    inner = [arg for arg in get_args(kind) if arg is not type(None)] if is_union else [kind]
    doc = next((note for note in notes if isinstance(note, str)), "")
    limits = next((note for note in notes if isinstance(note, Limits)), None)
    return Slot(kind=inner[0], doc=doc, limits=limits, is_optional=is_union)


def _inner(slot: Slot, part: str) -> Slot | None:
    if isinstance(slot.kind, type) and is_dataclass(slot.kind):
        return slots(slot.kind).get(part)
    if get_origin(slot.kind) is not None and issubclass(get_origin(slot.kind) or object, Mapping):
        return Slot(kind=get_args(slot.kind)[1])
    return None


def _from_text(leaf: Leaf) -> object:
    slot, text = slot_at(leaf.path), str(leaf.value).strip()
    if slot is None or slot.kind is str:
        return text
    if slot.is_optional and text.lower() == "none":
        return None
    if text[:1] in ("[", "{"):
        return _from_json(leaf, text)
    if get_origin(slot.kind) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _from_json(leaf: Leaf, text: str) -> object:
    import json

    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{leaf.place}: {leaf.name}: expected {kind_name(leaf.path)} written as JSON") from error


def _at(value: object, path: KeyPath) -> object:
    for part in path:
        value = value[part] if isinstance(value, Mapping) else getattr(value, part)
    return value


def _is_quoted(raw: object, decoded: object) -> bool:
    """Say whether a file holds "8" where 8 is meant; the decoder forgives that to models, files are strict."""
    return isinstance(raw, str) and not isinstance(decoded, str)


def _refuse_impossible(leaf: Leaf, value: object) -> None:
    slot = slot_at(leaf.path)
    if slot and slot.limits and value is not None and not slot.limits.admit(float(str(value))):
        raise ConfigError(f"{leaf.place}: {leaf.name}: expected {slot.limits}, got {value}")
    if leaf.path in _ADDRESSES and value and not str(value).startswith(("http://", "https://")):
        raise ConfigError(f"{leaf.place}: {leaf.name}: expected an address beginning with http:// or https://")
