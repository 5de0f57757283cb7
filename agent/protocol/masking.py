"""Masks secrets in nested data: every string of a dataclass, list or mapping."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

T = TypeVar("T")


def mask_strings(value: T, mask: Callable[[str], str]) -> T:
    """Return the value with every string masked; the same object if nothing changed."""
    return cast(T, _mask_strings(value, mask))


def _mask_strings(value: object, mask: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, (tuple, list)):
        items = [_mask_strings(item, mask) for item in value]
        is_same = all(new is old for new, old in zip(items, value, strict=True))
        return value if is_same else type(value)(items)
    if isinstance(value, Mapping):
        pairs = {key: _mask_strings(item, mask) for key, item in value.items()}
        return value if all(pairs[key] is item for key, item in value.items()) else pairs
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        before = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        after = {name: _mask_strings(item, mask) for name, item in before.items()}
        changes = {name: item for name, item in after.items() if item is not before[name]}
        return dataclasses.replace(value, **changes) if changes else value
    return value
