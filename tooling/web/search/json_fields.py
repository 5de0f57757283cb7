"""Reading strangers' JSON: the field that is there and of the right kind, or nothing."""

from collections.abc import Mapping

from tooling.web.search.errors import SearchFault


def objects_in(data: object, *path: str) -> list[Mapping[str, object]]:
    """Return the objects of the list at `path`; an answer without such a list is none."""
    for name in path:
        data = data.get(name) if isinstance(data, Mapping) else None
    if not isinstance(data, list):
        raise SearchFault("malformed", f"there is no list of {path[-1]}")
    return [item for item in data if isinstance(item, Mapping)]


def number_at(data: object, *path: str) -> float | None:
    """Return the number at `path`, or None."""
    for name in path:
        data = data.get(name) if isinstance(data, Mapping) else None
    return float(data) if isinstance(data, (int, float)) and not isinstance(data, bool) else None
