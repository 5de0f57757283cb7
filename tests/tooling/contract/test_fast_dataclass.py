"""The fast dataclass decorator behaves like the one in the standard library."""

import copy
import dataclasses
import pickle
from collections.abc import Mapping
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
