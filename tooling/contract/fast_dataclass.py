"""A faster `dataclass` for slotted classes: same behavior, but methods are built when the first instance needs them.

Every start of the program creates hundreds of these classes, and a few instances of some. The standard library compiles
up to eight functions for each; here they are shared, and only a class with many instances has its own constructor.
mypy sees the decorator of the standard library.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field
from functools import cache, partial
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
# Attributes of the undecorated class that its slotted copy defines anew.
_REPLACED = ("__dict__", "__weakref__")
# A class with so many instances gets a constructor of its own: compiling one takes as long as a hundred calls without
# one, and most classes have few instances.
_COMPILED_AT = 40


class _OnFirstUse:
    """A class attribute that is computed when it is first read."""

    def __init__(self, name: str, compute: Callable[[type], object]) -> None:
        self._name = name
        self._compute = compute

    def __get__(self, instance: object, owner: type) -> Any:
        cls = next(base for base in owner.__mro__ if base.__dict__.get(self._name) is self)
        setattr(cls, self._name, self._compute(cls))
        return getattr(owner if instance is None else instance, self._name)


class _Constructor:
    """The `__init__` of a class: one for all classes, and a compiled one for those with many instances."""

    __slots__ = ("_calls", "_cls", "_plan")

    def __init__(self) -> None:
        self._calls = 0
        self._cls: Any = None
        self._plan: _Plan | None = None

    def bind(self, cls: type) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type) -> Any:
        self._calls += 1
        if instance is None or self._calls > _COMPILED_AT:
            return self._compile().__get__(instance, owner)
        if self._plan is None:
            self._plan = _Plan(self._cls)
        return partial(self._initialize, instance, self._plan)

    def _compile(self) -> Any:
        self._cls.__init__ = _build_init(self._cls)
        return self._cls.__dict__["__init__"]

    def _initialize(self, instance: Any, plan: "_Plan", /, *args: object, **given: object) -> None:
        values = plan.defaults | given
        if args or values.keys() != plan.names:
            # Positional arguments are rare, and anything else is a mistake that Python reports.
            self._compile()(instance, *args, **given)
            return
        for name, value in values.items():
            _set(instance, name, plan.factories[name]() if value is _FACTORY else value)
        if plan.has_check:
            instance.__post_init__()


class _Plan:
    """Defaults of the fields of a class."""

    __slots__ = ("defaults", "factories", "has_check", "names")

    def __init__(self, cls: type) -> None:
        parameters = _parameters(cls)
        self.names = {one.name for one in parameters}
        self.defaults = {one.name: one.default for one in parameters if one.default is not MISSING}
        self.factories = {one.name: one.factory for one in parameters if one.factory is not MISSING}
        self.has_check = hasattr(cls, "__post_init__")


_set = object.__setattr__


def _create(cls: type[T], *, is_frozen: bool, is_keyword_only: bool, has_equality: bool) -> type[T]:
    own = dict(cls.__dict__)
    names = [name for name, hint in cls.__annotations__.items() if getattr(hint, "__origin__", hint) is not ClassVar]
    fields = [(name, own.pop(name, MISSING), is_keyword_only) for name in names]
    for name in _REPLACED:
        own.pop(name, None)
    # Python sets `__hash__` to None where a class defines only `__eq__`.
    if own.get("__hash__", MISSING) is None:
        del own["__hash__"]
    inherited = {name for base in cls.__mro__[1:-1] for name in base.__dict__.get("__slots__", ())}
    constructor = _Constructor()
    namespace = {
        **_METHODS[is_frozen, has_equality],
        "__init__": constructor,
        **own,
        "__slots__": tuple(name for name in names if name not in inherited),
        "__qualname__": cls.__qualname__,
        "_own_fields": fields,
    }
    metaclass: Any = type(cls)
    created: type[T] = metaclass(cls.__name__, cls.__bases__, namespace)
    constructor.bind(created)
    return created


def _describe_fields(cls: type) -> dict[str, Field[Any]]:
    """Return the fields in the form that `dataclasses.fields` reads."""
    described: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        for name, default, is_keyword in vars(base).get("_own_fields", ()):
            one: Any = default if isinstance(default, Field) else dataclasses.field(default=default)
            one.name, one.type, one.kw_only = name, base.__annotations__[name], is_keyword
            # Without it, `dataclasses.fields` leaves the field out.
            one._field_type = vars(dataclasses)["_FIELD"]
            described[name] = one
    return described


def _describe_params(cls: Any) -> object:
    """Return the parameters of the decorator in the form of the standard library."""
    decorate: Any = dataclasses.dataclass(frozen=cls.__setattr__ is _frozen_setattr, eq=cls.__eq__ is _is_equal)
    return decorate(type(cls.__name__, (), {})).__dataclass_params__


def _match_args(cls: type) -> tuple[str, ...]:
    return tuple(one.name for one in _parameters(cls) if not one.is_keyword)


class _Parameter:
    """A parameter of `__init__`: the field and its default."""

    __slots__ = ("default", "factory", "is_given", "is_keyword", "name")

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
    """Return the parameters for the fields of a class and its bases; keyword-only ones follow the others."""
    found: dict[str, _Parameter] = {}
    for base in reversed(cls.__mro__):
        for name, default, is_keyword in vars(base).get("_own_fields", ()):
            found[name] = _Parameter(name, default, is_keyword=is_keyword)
    # `__post_init__` sets the fields that are not given.
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
    function = FunctionType(code, {"_set": _set, "_FACTORY": _FACTORY, **factories})
    optional = [one for one in parameters if one.default is not MISSING]
    function.__defaults__ = tuple(one.default for one in optional if not one.is_keyword) or None
    function.__kwdefaults__ = {one.name: one.default for one in optional if one.is_keyword} or None
    return function


@cache
def _init_code(shape: tuple[tuple[bool, bool], ...], *, has_check: bool) -> CodeType:
    """Compile the `__init__` of all classes of this shape: for each field, is it keyword-only and has it a factory."""
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
    """Return a function that reads the fields of an instance that are compared."""
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


_SHARED: dict[str, Any] = {
    "__repr__": _repr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
    "__dataclass_fields__": _OnFirstUse("__dataclass_fields__", _describe_fields),
    "__dataclass_params__": _OnFirstUse("__dataclass_params__", _describe_params),
    "__match_args__": _OnFirstUse("__match_args__", _match_args),
    "_compared": _OnFirstUse("_compared", _build_getter),
}
_EQUALITY: dict[str, Any] = {"__eq__": _is_equal}
_FROZEN: dict[str, Any] = {"__setattr__": _frozen_setattr, "__delattr__": _frozen_delattr}
# The methods of a class, by whether it is frozen and whether its instances are compared by their fields.
_METHODS: dict[tuple[bool, bool], dict[str, Any]] = {
    (True, True): {**_SHARED, **_EQUALITY, **_FROZEN, "__hash__": _hash},
    (True, False): {**_SHARED, **_FROZEN},
    (False, True): {**_SHARED, **_EQUALITY, "__hash__": None},
    (False, False): _SHARED,
}
