"""Dataclasses as JSON: the schema, the decoder and the encoder for all plain data.

Supported field types: str, int, float, bool, Path, datetime, StrEnum, object, Literal, X | None, tuple[X, ...],
Mapping[str, X] and nested dataclasses. `Annotated[X, "text"]` gives the field its description.
"""

import dataclasses
import difflib
import types
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

JsonObject: TypeAlias = Mapping[str, object]
T = TypeVar("T")

_SCALARS: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean", Path: "string"}
_BOOLEAN_WORDS = {"true": True, "false": False}


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
    if not isinstance(data, Mapping):
        raise DecodeError(f"{location or cls.__name__}: expected an object, got {_json_type(data)}")
    known = _readers(cast(type, cls))
    prefix = f"{location}." if location else ""
    if extra == "forbid" and (unknown := [str(key) for key in data if key not in known]):
        raise DecodeError(f"unknown field {prefix}{unknown[0]}{did_you_mean(unknown[0], known)}")
    values: dict[str, object] = {}
    for name, reader in known.items():
        if name in data:
            value = data[name]
            values[name] = value if reader.accepts(value) else reader.decode(value, f"{prefix}{name}", extra)
        elif reader.is_required:
            raise DecodeError(f"missing field {prefix}{name} ({_describe_type(reader.hint)})")
    return cls(**values)


def encode(value: object) -> object:
    """Turn dataclasses, paths, tuples and mappings into plain JSON values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (tuple, list, frozenset)):
        return [encode(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value) if isinstance(value, (Path, StrEnum)) else value


def did_you_mean(word: str, known: Mapping[str, object] | list[str]) -> str:
    """Return ', did you mean X?' for the closest known name, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f", did you mean {close[0]}?" if close else ""


@cache
def _fields(cls: type) -> tuple[tuple[dataclasses.Field[object], object], ...]:
    hints = get_type_hints(cls, include_extras=True)
    return tuple((field, hints[field.name]) for field in dataclasses.fields(cls) if field.init)


class _FieldReader:
    """How one field is decoded; logs have millions of values, most of which need no more than a look at their type."""

    __slots__ = ("_texts", "_types", "hint", "is_required")

    def __init__(self, field: dataclasses.Field[object], hint: object) -> None:
        self.hint = hint
        self.is_required = _is_required(field)
        self._types, self._texts = _unchanged(hint)

    def accepts(self, value: object) -> bool:
        """Whether the value is what the field holds, without any conversion."""
        kind = type(value)
        return kind in self._types or (kind is str and value in self._texts)

    def decode(self, value: object, location: str, extra: Literal["forbid", "ignore"]) -> object:
        return _decode_value(self.hint, value, location, extra)


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
    if hint is object:
        return frozenset({str, int, float, bool, type(None), dict, list}), frozenset()
    # Not float: a number that is none (NaN) is refused.
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
        return {"type": "string", "enum": list(args)}
    if origin is tuple:
        return {"type": "array", "items": _schema(args[0])}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return schema_of(hint)
    if isinstance(hint, type) and hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    if hint is datetime:
        return {"type": "string", "format": "date-time"}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"type": "string", "enum": list(map(str, hint))}
    return {"type": "object"} if origin is not None else {}


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
    if origin is tuple:
        return _decode_items(args[0], data, location, extra)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return decode(cast(type[object], hint), data, location=location, extra=extra)
    if origin is not None:
        return _decode_mapping(args[1], data, location, extra)
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
    """Accept a number, or a string that is one: models often quote numbers."""
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
