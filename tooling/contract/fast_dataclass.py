"""A faster `dataclass` for slotted classes: same behavior, but what only instances need is built for the first one.

Every start of the program creates hundreds of these classes and makes instances of few. The standard library compiles
up to eight functions for each; here one is, the constructor, and the others are shared. mypy sees the decorator of the
standard library.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, slots, frozen=False, kw_only=False, eq=True):
        """Return a decorator for a slotted class; all dataclasses of the program are slotted."""
        assert slots
        return lambda cls: _create(cls, is_frozen=frozen, is_keyword_only=kw_only, has_equality=eq)


__all__ = ["dataclass"]

T = TypeVar("T")
_FACTORY = object()
# What a class has before it is decorated and its slotted copy gets anew.
_REPLACED = ("__dict__", "__weakref__")


class _OnFirstUse:
    """A class attribute that is computed when it is first read."""

    def __init__(self, name: str, compute: Callable[[type], object]) -> None:
        self.name = name
        self._compute = compute
        self.cls: type = object

    def __get__(self, instance: object, owner: type) -> Any:
        setattr(self.cls, self.name, self._compute(self.cls))
        return getattr(owner if instance is None else instance, self.name)


def _create(cls: type[T], *, is_frozen: bool, is_keyword_only: bool, has_equality: bool) -> type[T]:
    own = dict(cls.__dict__)
    names = [name for name, hint in cls.__annotations__.items() if getattr(hint, "__origin__", hint) is not ClassVar]
    fields = {"__module__": cls.__module__, "__annotations__": cls.__annotations__, "__doc__": cls.__doc__}
    fields |= {name: own.pop(name) for name in names if name in own}

    def describe() -> Any:
        """Let the standard library describe the fields."""
        model = type(cls.__name__, cls.__bases__, fields)
        return dataclasses.dataclass(model, init=False, repr=False, eq=False, kw_only=is_keyword_only)

    late = [
        _OnFirstUse("__dataclass_fields__", lambda _: describe().__dataclass_fields__),
        _OnFirstUse("__dataclass_params__", lambda _: describe().__dataclass_params__),
        _OnFirstUse("__match_args__", lambda _: describe().__match_args__),
        _OnFirstUse("__init__", _build_init),
        _OnFirstUse("_compared", _build_getter),
    ]
    inherited = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
    namespace = {
        **{one.name: one for one in late},
        **_SHARED,
        **(_EQUALITY if has_equality else {}),
        **(_FROZEN if is_frozen else {}),
        **({"__hash__": _hash if is_frozen else None} if has_equality else {}),
        **{name: value for name, value in own.items() if name not in _REPLACED},
        "__slots__": tuple(name for name in names if name not in inherited),
        "__qualname__": cls.__qualname__,
    }
    metaclass: Any = type(cls)
    created: type[T] = metaclass(cls.__name__, cls.__bases__, namespace)
    for one in late:
        one.cls = created
    return created


def _build_init(cls: Any) -> Callable[..., None]:
    """Compile an `__init__` with one parameter per field, as the standard library does."""
    namespace: dict[str, Any] = {"_set": object.__setattr__, "_FACTORY": _FACTORY}
    positional: list[str] = []
    keywords: list[str] = []
    lines: list[str] = []
    for field in dataclasses.fields(cls):
        if not field.init:
            # Set by `__post_init__`.
            continue
        name = value = parameter = field.name
        if field.default is not dataclasses.MISSING:
            namespace[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            namespace[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_FACTORY"
            value = f"_make_{name}() if {name} is _FACTORY else {name}"
        (keywords if field.kw_only else positional).append(parameter)
        lines.append(f" _set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    signature = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
    exec(f"def __init__({signature}):\n" + ("\n".join(lines) or " pass"), namespace)  # noqa: S102 (as the standard library does)
    constructor: Callable[..., None] = namespace["__init__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    return constructor


def _build_getter(cls: Any) -> object:
    """Return a function that reads the fields of an instance that count for equality."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    return staticmethod(attrgetter(*names) if names else lambda instance: ())


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


_SHARED: dict[str, Any] = {"__repr__": _repr, "__getstate__": _getstate, "__setstate__": _setstate}
_EQUALITY: dict[str, Any] = {"__eq__": _is_equal}
_FROZEN: dict[str, Any] = {"__setattr__": _frozen_setattr, "__delattr__": _frozen_delattr}
