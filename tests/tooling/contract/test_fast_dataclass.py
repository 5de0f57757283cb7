"""The fast dataclass decorator behaves like the one in the standard library."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A dataclass with defaults, a class variable and a property."""

    kind: ClassVar[str] = "point"
    x: int
    y: int = 2
    names: Mapping[str, int] = dataclasses.field(default_factory=dict)
    note: str = dataclasses.field(default="", compare=False, repr=False)

    @property
    def total(self) -> int:
        return self.x + self.y


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Point):
    """A subclass with a check and a computed field."""

    name: str
    initial: str = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a name is needed")
        object.__setattr__(self, "initial", self.name[0])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """The standard library's version."""

    x: int
    y: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Fast:
    """Our version."""

    x: int
    y: int = 2


def test_default_factories_are_called_for_each_instance() -> None:
    first, second = Point(x=1), Point(x=1)
    assert (first.x, first.y, first.total, Point.kind) == (1, 2, 3, "point")
    assert first.names == second.names == {}
    assert first.names is not second.names


def test_equality_and_hash_compare_fields() -> None:
    assert Point(x=1, note="a") == Point(x=1, note="b")
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Named(x=1, name="n")
    assert Fast(x=1) != Standard(x=1)
    assert (Fast(x=1) == "other", hash(Fast(x=1)) == hash(Fast(x=1))) == (False, True)
    assert {Fast(x=1), Fast(x=1), Fast(x=3)} == {Fast(x=1), Fast(x=3)}


def test_instances_are_frozen_and_slotted() -> None:
    point = Fast(x=1)
    for name in ("x", "z"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(point, name, 5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    assert not hasattr(point, "__dict__")


@pytest.mark.parametrize("given", [{}, {"x": 1, "z": 2}])
def test_wrong_arguments_raise_the_same_error_as_the_standard_library(given: dict[str, int]) -> None:
    messages = []
    for kind in (Fast, Standard):
        with pytest.raises(TypeError) as problem:
            kind(**given)
        messages.append(str(problem.value).replace("Fast", "Standard"))
    assert messages[0] == messages[1]
    with pytest.raises(TypeError):
        Fast(1)  # type: ignore[misc]


def test_repr_matches_the_standard_library() -> None:
    assert repr(Fast(x=1)) == repr(Standard(x=1)).replace("Standard", "Fast")
    assert repr(Point(x=1, note="hidden")) == "Point(x=1, y=2, names={})"


def test_the_dataclasses_functions_accept_fast_dataclasses() -> None:
    assert dataclasses.is_dataclass(Point)
    assert [field.name for field in dataclasses.fields(Named)] == ["x", "y", "names", "note", "name", "initial"]
    assert dataclasses.replace(Point(x=1), y=5) == Point(x=1, y=5)
    assert dataclasses.asdict(Fast(x=1)) == {"x": 1, "y": 2}


def test_a_subclass_inherits_fields_and_runs_post_init() -> None:
    named = Named(x=1, name="n")
    assert (named.total, named.name, named.initial) == (3, "n", "n")
    with pytest.raises(ValueError, match="a name is needed"):
        Named(x=1, name="")


def test_instances_can_be_copied_and_pickled() -> None:
    point = Point(x=1, names={"a": 1}, note="kept")
    for clone in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert (clone, clone.note, clone.names) == (point, "kept", {"a": 1})


@dataclass(slots=True)
class Mutable:
    """A dataclass that can be changed, with positional arguments."""

    x: int
    items: list[int] = dataclasses.field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ticket:
    """A dataclass whose instances are all different."""

    number: int


def test_a_class_that_can_be_changed_takes_positional_arguments_and_has_no_hash() -> None:
    mutable = Mutable(1)
    mutable.x = 2
    assert mutable == Mutable(2, [])
    assert (Mutable.__match_args__, Point.__match_args__) == (("x", "items"), ())
    match mutable:
        case Mutable(x, items):
            assert (x, items) == (2, [])
    with pytest.raises(TypeError, match="unhashable"):
        hash(mutable)
    with pytest.raises(AttributeError):
        mutable.other = 1  # type: ignore[attr-defined]


def test_without_equality_an_instance_equals_only_itself() -> None:
    first, second = Ticket(number=1), Ticket(number=1)
    assert len({first, second, first}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.number = 2  # type: ignore[misc]


def test_the_parameters_are_those_of_the_standard_library() -> None:
    shown = [
        [(one.name, one.kind, one.default) for one in inspect.signature(kind).parameters.values()]
        for kind in (Fast, Standard)
    ]
    assert shown[0] == shown[1]


def test_threads_that_use_a_class_for_the_first_time_together_agree_on_its_fields() -> None:
    for _ in range(50):

        @dataclass(slots=True, kw_only=True)
        class Fresh:
            """Used by two threads at once."""

            x: int
            names: list[str] = dataclasses.field(default_factory=list)

        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda x: Fresh(x=x), range(4)))
        assert [(one.x, one.names) for one in made] == [(x, []) for x in range(4)]
