"""Typed access to untrusted JSON: a value of the wrong type reads as empty."""

from collections.abc import Mapping

# More than any model can count; a larger number, or an infinite one, is a mistake of the server.
MAX_COUNT = 10**12


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
    """Return the non-negative number at `key` as an integer, or zero if it cannot be one."""
    value = data.get(key)
    return int(value) if isinstance(value, (int, float)) and 0 <= value <= MAX_COUNT else 0
