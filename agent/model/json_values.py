"""Typed access to untrusted JSON: a value of the wrong type reads as empty."""

from collections.abc import Mapping


def object_at(data: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return the object at `key`, or an empty one."""
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def objects_at(data: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    """Return the objects in the list at `key`."""
    value = data.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_at(data: Mapping[str, object], key: str) -> str:
    """Return the string at `key`, or an empty one."""
    value = data.get(key)
    return value if isinstance(value, str) else ""


def count_at(data: Mapping[str, object], key: str) -> int:
    """Return the non-negative number at `key` as an integer, or zero."""
    value = data.get(key)
    return int(value) if isinstance(value, (int, float)) and value == value and value >= 0 else 0
