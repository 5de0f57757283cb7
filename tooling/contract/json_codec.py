"""Dataclasses as JSON: the schema, the decoder and the encoder for all plain data.

Supported field types: str, int, float, bool, Path, datetime, StrEnum, object, Literal, X | None, tuple[X, ...],
list[X], set[X], Sequence[X], Mapping[str, X], list, dict and nested dataclasses. `Annotated[X, "text"]` gives the field
its description.
"""

import dataclasses
import types
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

JsonObject: TypeAlias = Mapping[str, object]
T = TypeVar("T")

_SCALARS: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean", Path: "string"}
_LISTS: dict[object, Callable[[Iterable[object]], Collection[object]]] = {
    **{kind: kind for kind in (tuple, list, set, frozenset)},
    **dict.fromkeys((Sequence, Collection, Iterable), tuple),
}
_MAPPINGS = (dict, Mapping, MutableMapping)
_PLAIN = frozenset({str, bool, int, float})
_BOOLEAN_WORDS = {"true": True, "false": False}
_MISSING = object()


class DecodeError(ValueError):
    """Data does not match its type; the message names the location, the expected type and the actual value."""


def schema_of(cls: type) -> dict[str, object]:
    """Return the JSON schema of a dataclass as an object schema."""
    properties: dict[str, object] = {}
    required: list[str] = []
    for field, hint in _fields(cls):
        properties[field.name] = _schema(hint)
        if _is_required(field):
            required.append(field.name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def decode(cls: type[T], data: object, *, location: str = "", extra: Literal["forbid", "ignore"] = "forbid") -> T:
    """Build `cls` from plain JSON data, or raise DecodeError."""
    if type(data) is not dict and not isinstance(data, Mapping):
        raise DecodeError(f"{location or cls.__name__}: expected an object, got {_json_type(data)}")
    known = _readers(cast(type, cls))
    prefix = f"{location}." if location else ""
    if extra == "forbid" and (unknown := [str(key) for key in data if key not in known]):
        raise DecodeError(f"unknown field {prefix}{unknown[0]}{did_you_mean(unknown[0], known)}")
    values: dict[str, object] = {}
    for name, reader in known.items():
        # Not through a method: logs have millions of values, most of which only need a type check.
        value = data.get(name, _MISSING)
        if value is _MISSING:
            if reader.is_required:
                raise DecodeError(f"missing field {prefix}{name} ({_describe_type(reader.hint)})")
        elif type(value) in reader.types or (type(value) is str and value in reader.texts):
            values[name] = value
        else:
            values[name] = _decode_value(reader.hint, value, f"{prefix}{name}", extra)
    return cls(**values)


def encode(value: object) -> object:
    """Turn dataclasses, paths, tuples and mappings into plain JSON values."""
    kind: type = type(value)
    if value is None or kind in _PLAIN:
        return value
    if (found := field_values(kind)) is not None:
        names, values_of = found
        # Most fields are plain, and every event passes through here.
        return {
            name: item if item is None or type(item) in _PLAIN else encode(item)
            for name, item in zip(names, values_of(value), strict=True)
        }
    if isinstance(value, (tuple, list, set, frozenset)):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value) if isinstance(value, (Path, StrEnum)) else value


@cache
def field_values(cls: type) -> tuple[tuple[str, ...], Callable[[object], tuple[object, ...]]] | None:
    """Return the names of a dataclass's fields and a function that returns their values; None for any other class."""
    if not dataclasses.is_dataclass(cls):
        return None
    names = tuple(field.name for field in dataclasses.fields(cls))
    # One call instead of one for each field; for a single name, `attrgetter` returns no tuple.
    return names, attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ', did you mean X?' for the closest known name, or nothing."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f", did you mean {close[0]}?" if close else ""


@cache
def hints_of(cls: type) -> Mapping[str, object]:
    """Return the type of each field of a class, with its annotations."""
    hints: dict[str, object] = {}
    for base in reversed(cls.__mro__[:-1]):
        hints |= base.__annotations__
    # Evaluating an annotation that is not text takes as long as the rest of a decoder.
    return get_type_hints(cls, include_extras=True) if any(isinstance(hint, str) for hint in hints.values()) else hints


@cache
def _fields(cls: type) -> tuple[tuple[dataclasses.Field[object], object], ...]:
    hints = hints_of(cls)
    return tuple((field, hints[field.name]) for field in dataclasses.fields(cls) if field.init)


class _FieldReader:
    """Decoder of one field: values of these types, and these texts, are already decoded."""

    __slots__ = ("hint", "is_required", "texts", "types")

    types: frozenset[type]
    texts: frozenset[object]

    def __init__(self, field: dataclasses.Field[object], hint: object) -> None:
        self.hint = hint
        self.is_required = _is_required(field)

    def __getattr__(self, name: str) -> object:
        # Created when the field is first read: few fields of a large class may ever be.
        if name not in ("types", "texts"):
            raise AttributeError(name)
        self.types, self.texts = _unchanged(self.hint)
        return getattr(self, name)


def _unchanged(hint: object) -> tuple[frozenset[type], frozenset[object]]:
    """Return the types, and for a choice the texts, that are decoded to themselves."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _unchanged(args[0])
    if origin is Literal:
        return frozenset(), frozenset(arg for arg in args if isinstance(arg, str))
    if origin in (Union, types.UnionType) and type(None) in args and len(args) == 2:
        kinds, texts = _unchanged(next(arg for arg in args if arg is not type(None)))
        return kinds | {type(None)}, texts
    if origin is Mapping and args[1] is object:
        # Keys of JSON objects are texts.
        return frozenset({dict}), frozenset()
    if hint is object:
        return frozenset({str, int, float, bool, type(None), dict, list}), frozenset()
    # Not float: NaN is refused.
    return (frozenset({hint}) if hint in (str, int, bool) else frozenset()), frozenset()


@cache
def _readers(cls: type) -> dict[str, _FieldReader]:
    return {field.name: _FieldReader(field, hint) for field, hint in _fields(cls)}


def _is_required(field: dataclasses.Field[object]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _schema(hint: object) -> dict[str, object]:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return {**_schema(args[0]), "description": args[1]}
    if origin in (Union, types.UnionType):
        return _schema(next(arg for arg in args if arg is not type(None)))
    if origin is Literal:
        kinds = {_SCALARS.get(type(arg), "") for arg in args}
        return {"type": kinds.pop(), "enum": list(args)} if len(kinds) == 1 else {"enum": list(args)}
    if origin in _LISTS:
        return {"type": "array", "items": _schema(args[0])}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return schema_of(hint)
    if isinstance(hint, type) and hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    if hint in _LISTS:
        return {"type": "array"}
    if hint is datetime:
        return {"type": "string", "format": "date-time"}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"type": "string", "enum": list(map(str, hint))}
    return {"type": "object"} if origin in _MAPPINGS or hint in _MAPPINGS else {}


def _decode_value(hint: object, data: object, location: str, extra: Literal["forbid", "ignore"]) -> object:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _decode_value(args[0], data, location, extra)
    if origin in (Union, types.UnionType):
        return _decode_union(args, data, location, extra)
    if origin is Literal:
        if data not in args:
            raise DecodeError(f"{location}: expected one of {', '.join(map(str, args))}, got {data!r}")
        return data
    if origin in _LISTS or hint in _LISTS:
        items = _decode_items(args[0] if args else object, data, location, extra)
        return _LISTS[origin or hint](items)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return decode(cast(type[object], hint), data, location=location, extra=extra)
    if origin is not None or hint in _MAPPINGS:
        return _decode_mapping(args[1] if args else object, data, location, extra)
    return _decode_scalar(cast(type, hint), data, location)


def _decode_union(args: tuple[object, ...], data: object, location: str, extra: Literal["forbid", "ignore"]) -> object:
    if data is None and type(None) in args:
        return None
    problem: DecodeError | None = None
    for arg in args:
        if arg is type(None):
            continue
        try:
            return _decode_value(arg, data, location, extra)
        except DecodeError as error:
            problem = problem or error
    raise problem or DecodeError(f"{location}: expected null, got {_json_type(data)}")


def _decode_items(item: object, data: object, location: str, extra: Literal["forbid", "ignore"]) -> tuple[object, ...]:
    if not isinstance(data, (list, tuple)):
        raise DecodeError(f"{location}: expected a list, got {_json_type(data)}")
    return tuple(_decode_value(item, value, f"{location}[{index}]", extra) for index, value in enumerate(data))


def _decode_mapping(item: object, data: object, location: str, extra: Literal["forbid", "ignore"]) -> dict[str, object]:
    if not isinstance(data, Mapping):
        raise DecodeError(f"{location}: expected an object, got {_json_type(data)}")
    if item is object:
        return {str(key): value for key, value in data.items()}
    return {str(key): _decode_value(item, value, f"{location}.{key}", extra) for key, value in data.items()}


def _decode_scalar(hint: type, data: object, location: str) -> object:
    if hint is object:
        return data
    if hint is Path and isinstance(data, str):
        return Path(data)
    if hint is bool and isinstance(data, str) and data.lower() in _BOOLEAN_WORDS:
        return _BOOLEAN_WORDS[data.lower()]
    if hint in (int, float) and not isinstance(data, bool):
        return _decode_number(hint, data, location)
    if hint is datetime and isinstance(data, str):
        return _decode_time(data, location)
    if issubclass(hint, StrEnum) and isinstance(data, str):
        return _decode_choice(hint, data, location)
    if isinstance(data, hint) and not (isinstance(data, bool) and hint is not bool):
        return data
    raise DecodeError(f"{location}: expected {_describe_type(hint)}, got {_json_type(data)} {_short_repr(data)}")


def _decode_choice(hint: type[StrEnum], data: str, location: str) -> StrEnum:
    try:
        return hint(data)
    except ValueError as error:
        raise DecodeError(f"{location}: expected one of {', '.join(map(str, hint))}, got {data!r}") from error


def _decode_time(data: str, location: str) -> datetime:
    """Accept a time in ISO 8601; one without a zone is in UTC."""
    try:
        time = datetime.fromisoformat(data)
    except ValueError as error:
        raise DecodeError(
            f"{location}: expected a time such as 2026-01-31T02:00:00Z, got {_short_repr(data)}"
        ) from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _decode_number(hint: type, data: object, location: str) -> object:
    """Accept a number, or a string that contains one: models often quote numbers."""
    if isinstance(data, (int, float, str)):
        try:
            number = float(data)
        except (ValueError, OverflowError):
            number = float("nan")
        if hint is float and number == number:
            return number
        if number.is_integer():
            return int(data) if isinstance(data, int) else int(number)
    raise DecodeError(f"{location}: expected {_describe_type(hint)}, got {_json_type(data)} {_short_repr(data)}")


def _describe_type(hint: object) -> str:
    if get_origin(hint) is Annotated:
        return _describe_type(get_args(hint)[0])
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false", Path: "a path"}
    names |= {datetime: "a time"}
    return names.get(hint, str(hint)) if isinstance(hint, type) else str(hint)


def _json_type(data: object) -> str:
    if data is None:
        return "null"
    kinds = {str: "text", int: "number", float: "number", bool: "boolean", list: "list", tuple: "list", dict: "object"}
    return kinds.get(type(data), type(data).__name__)


def _short_repr(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 60 else text[:57] + "..."
