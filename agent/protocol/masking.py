"""Masks secrets in nested data: every string of a dataclass, list or mapping."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import is_
from typing import Any, TypeVar, cast

from tooling.contract.json_codec import field_values

T = TypeVar("T")
_PLAIN = frozenset({bool, int, float})


def mask_strings(value: T, mask: Callable[[str], str]) -> T:
    """Return the value with every string masked; the same object if nothing changed."""
    return cast(T, _mask_strings(value, mask))


def _mask_strings(value: object, mask: Callable[[str], str]) -> object:
    # Most values of an event are one of these, and every event passes through here.
    if not value or type(value) in _PLAIN:
        return value
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, (tuple, list)):
        items = [_mask_strings(item, mask) for item in value]
        is_same = all(map(is_, items, value))
        return value if is_same else type(value)(items)
    kind: type = type(value)
    found = field_values(kind)
    if found is None:
        return _mask_mapping(value, mask) if isinstance(value, Mapping) else value
    names, values_of = found
    changes: dict[str, object] = {}
    for name, before in zip(names, values_of(value), strict=True):
        if not before or type(before) in _PLAIN:
            continue
        after = mask(before) if type(before) is str else _mask_strings(before, mask)
        if after is not before:
            changes[name] = after
    return replace(cast(Any, value), **changes) if changes else value


def _mask_mapping(value: Mapping[object, object], mask: Callable[[str], str]) -> object:
    pairs = {key: _mask_strings(item, mask) for key, item in value.items()}
    return value if all(pairs[key] is item for key, item in value.items()) else pairs
