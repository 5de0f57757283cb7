"""`dataclass` of the standard library, for facts: the same classes, made in a fifth of the time.

Every start of the program makes more than a hundred of them, and the library compiles up to eight functions for each.
All but the constructor can be written once for all: here they are. mypy and readers see the library's own decorator.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(**how):
        """Return the class as a dataclass; frozen, slotted and keyword-only ones are made the short way."""
        return _fact if how == _AS_FACT else dataclasses.dataclass(**how)


__all__ = ["dataclass"]

T = TypeVar("T")
_AS_FACT = {"frozen": True, "slots": True, "kw_only": True}
_FACTORY = object()


def _fact(cls: type[T]) -> type[T]:
    own = set(vars(cls))
    made: Any = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=True, kw_only=True)
    compared = [field.name for field in dataclasses.fields(made) if field.compare]
    shared: dict[str, Any] = {
        **_SHARED_METHODS,
        "__init__": _build_init(made),
        "_compared": staticmethod(_field_getter(compared)),
    }
    for name, function in shared.items():
        if name not in own:
            setattr(made, name, function)
    fact: type[T] = made
    return fact


def _build_init(made: type) -> Callable[..., None]:
    """Return `__init__` with one keyword for each field, compiled as the library would."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_FACTORY": _FACTORY}
    words: list[str] = []
    lines: list[str] = []
    for field in dataclasses.fields(made):
        if not field.init:
            # Set by `__post_init__`.
            continue
        name = value = field.name
        if field.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = field.default
            words.append(f"{name}=_default_{name}")
        elif field.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = field.default_factory
            words.append(f"{name}=_FACTORY")
            value = f"_make_{name}() if {name} is _FACTORY else {name}"
        else:
            words.append(name)
        lines.append(f" _set(self, {name!r}, {value})")
    if hasattr(made, "__post_init__"):
        lines.append(" self.__post_init__()")
    keywords = f", *, {', '.join(words)}" if words else ""
    exec(f"def __init__(self{keywords}):\n" + ("\n".join(lines) or " pass"), known)  # noqa: S102 (as the library does)
    constructor: Callable[..., None] = known["__init__"]
    constructor.__qualname__ = f"{made.__qualname__}.__init__"
    return constructor


def _field_getter(names: list[str]) -> Callable[[object], object]:
    """Return what reads these fields of a fact."""
    return attrgetter(*names) if names else lambda fact: ()


def _is_equal(self: Any, other: Any) -> bool:
    return self._compared(self) == self._compared(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash((self.__class__, self._compared(self)))


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _frozen_setattr(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _frozen_delattr(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _setstate(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_SHARED_METHODS: dict[str, Any] = {
    "__eq__": _is_equal,
    "__hash__": _hash,
    "__repr__": _repr,
    "__setattr__": _frozen_setattr,
    "__delattr__": _frozen_delattr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}
