"""Facts: whatever the library's dataclass does for them, ours does."""

import copy
import dataclasses
import pickle
from collections.abc import Mapping
from typing import ClassVar

import pytest

from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A fact as we write them."""

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
    """A fact that says more."""

    name: str
    initial: str = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a name is needed")
        object.__setattr__(self, "initial", self.name[0])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What the library makes of the same."""

    x: int
    y: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """What we make of it."""

    x: int
    y: int = 2


def test_defaults_are_filled_in_and_made_anew_for_each() -> None:
    first, second = Point(x=1), Point(x=1)
    assert (first.x, first.y, first.total, Point.kind) == (1, 2, 3, "point")
    assert first.names == second.names == {}
    assert first.names is not second.names


def test_facts_are_equal_by_what_they_say() -> None:
    assert Point(x=1, note="a") == Point(x=1, note="b")
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Named(x=1, name="n")
    assert Copy(x=1) != Model(x=1)
    assert (Copy(x=1) == "other", hash(Copy(x=1)) == hash(Copy(x=1))) == (False, True)
    assert {Copy(x=1), Copy(x=1), Copy(x=3)} == {Copy(x=1), Copy(x=3)}


def test_a_fact_cannot_be_changed_or_extended() -> None:
    point = Copy(x=1)
    for name in ("x", "z"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(point, name, 5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    assert not hasattr(point, "__dict__")


@pytest.mark.parametrize("given", [{}, {"x": 1, "z": 2}])
def test_wrong_arguments_are_refused_in_the_librarys_words(given: dict[str, int]) -> None:
    messages = []
    for kind in (Copy, Model):
        with pytest.raises(TypeError) as problem:
            kind(**given)
        messages.append(str(problem.value).replace("Copy", "Model"))
    assert messages[0] == messages[1]
    with pytest.raises(TypeError):
        Copy(1)  # type: ignore[misc]


def test_facts_are_shown_as_the_library_shows_them() -> None:
    assert repr(Copy(x=1)) == repr(Model(x=1)).replace("Model", "Copy")
    assert repr(Point(x=1, note="hidden")) == "Point(x=1, y=2, names={})"


def test_the_library_knows_them_as_its_own() -> None:
    assert dataclasses.is_dataclass(Point)
    assert [field.name for field in dataclasses.fields(Named)] == ["x", "y", "names", "note", "name", "initial"]
    assert dataclasses.replace(Point(x=1), y=5) == Point(x=1, y=5)
    assert dataclasses.asdict(Copy(x=1)) == {"x": 1, "y": 2}


def test_a_fact_that_says_more_keeps_what_it_had_and_is_checked() -> None:
    named = Named(x=1, name="n")
    assert (named.total, named.name, named.initial) == (3, "n", "n")
    with pytest.raises(ValueError, match="a name is needed"):
        Named(x=1, name="")


def test_facts_can_be_copied_and_sent_to_another_process() -> None:
    point = Point(x=1, names={"a": 1}, note="kept")
    for twin in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert (twin, twin.note, twin.names) == (point, "kept", {"a": 1})
