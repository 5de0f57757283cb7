"""Tool arguments on a command line: `key=value` typed by the tool's schema, or `key:=JSON`."""

import json
from collections.abc import Mapping, Sequence

from agent.vocabulary.errors import UsageError
from tooling.contract.tool import ToolSpec

_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_SYNTAX_HINT = "write key=value, or key:=JSON for numbers, lists and objects"


def parse_arguments(words: Sequence[str], spec: ToolSpec) -> dict[str, object]:
    """Parse the words into arguments, or raise UsageError naming the first invalid word."""
    arguments: dict[str, object] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key.removesuffix(":"):
            raise UsageError(f"{word!r} is not an argument", _SYNTAX_HINT)
        name = key.removesuffix(":")
        schema = _parameter_schema(name, spec)
        is_list = schema.get("type") == "array" and name == key
        if name in arguments and not is_list:
            raise UsageError(f"{name} is given twice")
        value = _parse_value(name, text, schema) if name == key else _parse_json(name, text)
        earlier = arguments.get(name, [])
        arguments[name] = [*earlier, value] if is_list and isinstance(earlier, list) else value
    return arguments


def _parameter_schema(name: str, spec: ToolSpec) -> Mapping[str, object]:
    properties = spec.parameters.get("properties")
    schema = properties.get(name) if isinstance(properties, Mapping) else None
    return schema if isinstance(schema, Mapping) else {}


def _parse_value(name: str, text: str, schema: Mapping[str, object]) -> object:
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items")
        return _parse_value(name, text, items if isinstance(items, Mapping) else {})
    if kind == "boolean":
        if text.lower() not in _BOOLEANS:
            raise UsageError(f"{name}: expected true or false, got {text!r}")
        return _BOOLEANS[text.lower()]
    if kind in ("integer", "number"):
        return _parse_number(name, text, is_integer=kind == "integer")
    if kind == "object":
        raise UsageError(f"{name} is an object", f"write it as JSON: {name}:='{{…}}'")
    return text


def _parse_number(name: str, text: str, *, is_integer: bool) -> int | float:
    try:
        return int(text) if is_integer else float(text)
    except ValueError as error:
        raise UsageError(f"{name}: expected {'a whole number' if is_integer else 'a number'}, got {text!r}") from error


def _parse_json(name: str, text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{name}: {error}", f"the value after {name}:= must be JSON") from error
