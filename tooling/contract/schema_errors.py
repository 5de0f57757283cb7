"""Validate data against a JSON schema, with messages for users: location, expected type, likely correction.

Supports the keywords that describe tool parameters (type, properties, required, additionalProperties, items, enum);
the tool itself checks the rest.
"""

import json
from collections.abc import Mapping
from math import isfinite

from tooling.contract.json_codec import JsonObject, did_you_mean

_TYPE_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a table of named values",
    "null": "nothing",
}


def find_schema_error(value: object, schema: JsonObject, location: str) -> str | None:
    """Return the error of a value, or None if it is valid."""
    kinds = _allowed_types(schema)
    if kinds and not any(_is_type(value, kind) for kind in kinds):
        expected = " or ".join(_TYPE_NAMES.get(kind, kind) for kind in kinds)
        return f"{location}: expected {expected}, got {_short_json(value)}"
    choices = schema.get("enum")
    if isinstance(choices, (list, tuple)) and value not in choices:
        near = did_you_mean(str(value), [str(choice) for choice in choices])
        return f"{location}: expected one of {', '.join(map(str, choices))}, got {_short_json(value)}{near}"
    if isinstance(value, Mapping):
        return _find_object_error(value, schema, location)
    items = schema.get("items")
    if isinstance(value, (list, tuple)) and isinstance(items, Mapping):
        found = (find_schema_error(item, items, f"{location}[{number}]") for number, item in enumerate(value, start=1))
        return next((problem for problem in found if problem), None)
    return None


def _find_object_error(value: JsonObject, schema: JsonObject, location: str) -> str | None:
    properties = schema.get("properties")
    known: JsonObject = properties if isinstance(properties, Mapping) else {}
    if schema.get("additionalProperties") is False and (unknown := [name for name in value if name not in known]):
        return f"unknown name {location}.{unknown[0]}{did_you_mean(unknown[0], known) or _list_known(known)}"
    required = schema.get("required")
    for name in required if isinstance(required, (list, tuple)) else ():
        if name not in value:
            return f"{location}.{name} is missing"
    for name, item in value.items():
        inner = known.get(name)
        if isinstance(inner, Mapping) and (problem := find_schema_error(item, inner, f"{location}.{name}")):
            return problem
    return None


def _allowed_types(schema: JsonObject) -> list[str]:
    kind = schema.get("type")
    return [kind] if isinstance(kind, str) else [str(one) for one in kind] if isinstance(kind, (list, tuple)) else []


def _is_type(value: object, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, (list, tuple))
        case "object":
            return isinstance(value, Mapping)
        case "null":
            return value is None
        case _:
            return True


def _list_known(known: JsonObject) -> str:
    return f"; known names: {', '.join(known)}" if known else "; no names are expected"


def _short_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
