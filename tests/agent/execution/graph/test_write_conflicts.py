"""Who is in whose way when files are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.execution.graph.ready_queue import PathPrefix, WriteLocks, write_prefixes

ROOT = "/work/project"


def has_conflict(held: str, wanted: str) -> bool:
    places = WriteLocks()
    places.acquire("a", write_prefixes([held], ROOT))
    return places.find_holder(write_prefixes([wanted], ROOT)) == "a"


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ("src", "src"),
        ("src", "./src/"),
        ("src", "src/x.py"),
        ("src/x.py", "src"),
        ("src/a/../x.py", "src/x.py"),
        (".", "deep/down/file"),
        ("file", "."),
        ("/work/project/src", "src/x.py"),
        ("src/x.py", "/work/project"),
        ("../other", "/work/other/x"),
        ("src/*.py", "src/x.md"),
        ("src/{a,b}.py", "src/a.py"),
        ("**/*.py", "docs/x.md"),
    ],
)
def test_spellings_of_overlapping_places_are_seen_through(held: str, wanted: str) -> None:
    assert has_conflict(held, wanted)
    assert has_conflict(wanted, held)


@pytest.mark.parametrize(
    ("held", "wanted"),
    [("src", "src2"), ("src/a", "src/b"), ("src/a*", "docs"), ("../x", "x"), ("/tmp/a", "tmp/a")],
)
def test_places_that_only_look_alike_are_free(held: str, wanted: str) -> None:
    assert not has_conflict(held, wanted)
    assert not has_conflict(wanted, held)


def test_a_step_may_hold_a_folder_and_what_lies_in_it() -> None:
    places = WriteLocks()
    places.acquire("a", write_prefixes(["src", "src/x", "src/x"], ROOT))
    places.release("a")
    assert places.find_holder(write_prefixes(["."], ROOT)) is None


paths = st.lists(st.sampled_from("ab"), max_size=3).map(tuple)


@given(st.lists(st.lists(paths, max_size=3, unique=True).map(tuple), max_size=8), st.randoms())
def test_the_holder_is_found_exactly_when_places_overlap(wishes: list[tuple[PathPrefix, ...]], chance) -> None:  # type: ignore[no-untyped-def]
    places, held = WriteLocks(), dict[str, tuple[PathPrefix, ...]]()
    for number, wish in enumerate(wishes):
        overlapping = {
            name
            for name, theirs in held.items()
            if any(one[: len(other)] == other[: len(one)] for one in wish for other in theirs)
        }
        holder = places.find_holder(wish)
        assert (holder in overlapping) if overlapping else (holder is None)
        if holder is None:
            held[str(number)] = wish
            places.acquire(str(number), wish)
        if held and chance.random() < 0.5:
            gone = chance.choice(sorted(held))
            places.release(gone)
            del held[gone]
