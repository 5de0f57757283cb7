"""docs/events.schema.json, generated from the event dataclasses; `python -m tests.docs.event_schema` updates it."""

import dataclasses
import json
import types
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal, Union, get_args, get_origin, get_type_hints

from agent.protocol.codec import _OPTIONAL, FORMAT
from agent.protocol.events import Event
from tests.house.source_tree import ROOT

FILE = ROOT / "docs" / "events.schema.json"
EVENTS: tuple[type, ...] = get_args(Event)
# These always happen inside a step, so `step_id` and `attempt` are required.
IN_STEP = ("step.", "tool.", "question.", "todo", "files", "context")

Schema = dict[str, object]
ENVELOPE = "Envelope"
_STEP_FIELDS = ("step_id", "attempt")
_SCALARS: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean", Path: "string"}
_ENVELOPE_FIELDS: Schema = {
    "ts": {"type": "string", "format": "date-time", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"},
    "seq": {"type": "integer", "minimum": 1},
    "session_id": {"type": "string"},
    "run_id": {"type": "string"},
    "step_id": {"type": "string"},
    "attempt": {"type": "integer", "minimum": 1},
}


def schema(*, is_strict: bool = False) -> Schema:
    """Return the schema of one line; a strict one rejects unknown fields, for our own tests."""
    records: dict[str, Schema] = {}
    events = {event.type: _event(event, records) for event in EVENTS}
    definitions = events | dict(sorted(records.items()))
    if is_strict:
        definitions = {name: {**body, "unevaluatedProperties": False} for name, body in definitions.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of `agent run --output-format stream-json`",
        "description": "Ignore fields and events you do not know: later versions may add some without a new `v`.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in events],
        "$defs": {ENVELOPE: _envelope(), **definitions},
    }


def records() -> dict[str, Schema]:
    """Return the schemas of the records inside events, by class name."""
    definitions: dict[str, Schema] = {}
    for event in EVENTS:
        _event(event, definitions)
    return definitions


def is_in_step(event_type: str) -> bool:
    """Whether an event of this type always belongs to a step."""
    return event_type.startswith(IN_STEP)


def text() -> str:
    """Return the schema file as it is committed."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def type_text(field: object) -> str:
    """Return a field's type as the reference page writes it."""
    assert isinstance(field, Mapping)
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if "anyOf" in field:
        return " or ".join(type_text(option) for option in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{word}`" for word in field["enum"])
    if field.get("type") == "array":
        return f"list of {type_text(field['items'])}"
    if "additionalProperties" in field:
        return f"object of {type_text(field['additionalProperties'])}"
    return str(field.get("type", "any"))


def _envelope() -> Schema:
    return {
        "description": "When and where an event happened; part of every event.",
        "type": "object",
        "properties": {"v": {"const": FORMAT}, "type": {"type": "string"}, **_ENVELOPE_FIELDS},
        "required": ["v", "type", *(name for name in _ENVELOPE_FIELDS if name not in _STEP_FIELDS)],
        "dependentRequired": {"step_id": ["attempt"], "attempt": ["step_id"]},
    }


def _event(event: type, definitions: dict[str, Schema]) -> Schema:
    name: str = event.type  # type: ignore[attr-defined]
    body = _record(event, definitions, optional=_OPTIONAL)
    step_fields = _STEP_FIELDS if is_in_step(name) else ()
    return {
        "description": body["description"],
        "$ref": f"#/$defs/{ENVELOPE}",
        "properties": {"type": {"const": name}, **body["properties"]},  # type: ignore[dict-item]
        "required": [*step_fields, *body["required"]],  # type: ignore[misc]
    }


def _record(cls: type, definitions: dict[str, Schema], *, optional: Collection[str] = ()) -> Schema:
    hints = get_type_hints(cls)
    fields = {field.name: _value(hints[field.name], definitions) for field in dataclasses.fields(cls)}
    return {
        "description": (cls.__doc__ or "").strip().partition("\n")[0],
        "type": "object",
        # An optional field is left out instead of being null.
        "properties": {name: _without_null(value) if name in optional else value for name, value in fields.items()},
        "required": [name for name in fields if name not in optional],
    }


def _without_null(field: Schema) -> Schema:
    options = field.get("anyOf")
    return options[0] if isinstance(options, list) else field


def _value(hint: object, definitions: dict[str, Schema]) -> Schema:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_value(arg, definitions) for arg in args]}
    if origin is Literal:
        return {"type": "string", "enum": list(args)}
    if origin is tuple:
        return {"type": "array", "items": _value(args[0], definitions)}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}
            definitions[hint.__name__] = _record(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if hint is types.NoneType:
        return {"type": "null"}
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    if origin is not None:
        inner = _value(args[1], definitions)
        return {"type": "object", "additionalProperties": inner} if inner else {"type": "object"}
    return {}


if __name__ == "__main__":
    FILE.write_text(text())
