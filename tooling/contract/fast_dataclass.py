"""A faster `dataclass` for slotted classes: same behavior, but what only instances need is built for the first one.

Every start of the program creates hundreds of these classes and makes instances of few. The standard library compiles
up to eight functions for each; here one is, the constructor, and the others are shared. mypy sees the decorator of the
standard library.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType
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
    described = {"__module__": cls.__module__, "__annotations__": cls.__annotations__, "__doc__": cls.__doc__}
    defaults = {name: own.pop(name) for name in names if name in own}
    for name in _REPLACED:
        own.pop(name, None)

    def describe() -> Any:
        """Let the standard library describe the fields."""
        model = type(cls.__name__, cls.__bases__, {**described, **defaults})
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
        # Python sets `__hash__` to None where a class defines only `__eq__`.
        **{name: value for name, value in own.items() if (name, value) != ("__hash__", None)},
        "__slots__": tuple(name for name in names if name not in inherited),
        "__qualname__": cls.__qualname__,
        "_own_fields": [(name, defaults.get(name, MISSING), is_keyword_only) for name in names],
    }
    metaclass: Any = type(cls)
    created: type[T] = metaclass(cls.__name__, cls.__bases__, namespace)
    for one in late:
        one.cls = created
    return created


class _Parameter:
    """A parameter of `__init__`: the field, and what it is if it is not given."""

    def __init__(self, name: str, default: Any, *, is_keyword: bool) -> None:
        self.name = name
        self.default = default
        self.factory: Any = MISSING
        self.is_given = True
        self.is_keyword = is_keyword
        if isinstance(default, Field):
            self.default, self.factory, self.is_given = default.default, default.default_factory, default.init
        if self.factory is not MISSING:
            self.default = _FACTORY


def _parameters(cls: type) -> list[_Parameter]:
    """Return the parameters for the fields of a class and its bases; those that are keyword-only follow the others."""
    found: dict[str, _Parameter] = {}
    for base in reversed(cls.__mro__):
        for name, default, is_keyword in vars(base).get("_own_fields", ()):
            found[name] = _Parameter(name, default, is_keyword=is_keyword)
    # What is not given is set by `__post_init__`.
    return sorted((one for one in found.values() if one.is_given), key=attrgetter("is_keyword"))


def _build_init(cls: Any) -> Callable[..., None]:
    """Return an `__init__` with one parameter per field, as the standard library compiles it."""
    parameters = _parameters(cls)
    shape = tuple((one.is_keyword, one.factory is not MISSING) for one in parameters)
    code = _init_code(shape, has_check=hasattr(cls, "__post_init__"))
    names = {_placeholder(number): one.name for number, one in enumerate(parameters)}
    code = code.replace(
        co_varnames=("self", *names.values()),
        co_consts=tuple(names.get(const, const) if isinstance(const, str) else const for const in code.co_consts),
        co_qualname=f"{cls.__qualname__}.__init__",
    )
    factories = {f"_make_{number}": one.factory for number, one in enumerate(parameters)}
    function = FunctionType(code, {"_set": object.__setattr__, "_FACTORY": _FACTORY, **factories})
    optional = [one for one in parameters if one.default is not MISSING]
    function.__defaults__ = tuple(one.default for one in optional if not one.is_keyword) or None
    function.__kwdefaults__ = {one.name: one.default for one in optional if one.is_keyword} or None
    return function


@cache
def _init_code(shape: tuple[tuple[bool, bool], ...], *, has_check: bool) -> CodeType:
    """Compile the `__init__` of all classes with such fields: is each keyword-only, and has it a factory?"""
    parameters, lines = ["self"], [" pass"]
    for number, (is_keyword, has_factory) in enumerate(shape):
        name = value = _placeholder(number)
        if is_keyword and "*" not in parameters:
            parameters.append("*")
        parameters.append(name)
        if has_factory:
            value = f"_make_{number}() if {name} is _FACTORY else {name}"
        lines.append(f" _set(self, {name!r}, {value})")
    lines += [" self.__post_init__()"] if has_check else []
    namespace: dict[str, Any] = {}
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines), namespace)  # noqa: S102 (as the standard library does)
    code: CodeType = namespace["__init__"].__code__
    return code


def _placeholder(number: int) -> str:
    return f"_field_{number}"


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
