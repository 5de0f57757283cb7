"""Write locks: which paths conflict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.execution.graph.ready_queue import PathPrefix, WriteLocks, write_prefixes

ROOT = "/work/project"


def has_conflict(held: str, wanted: str) -> bool:
    locks = WriteLocks()
    locks.acquire("a", write_prefixes([held], ROOT))
    return locks.find_holder(write_prefixes([wanted], ROOT)) == "a"


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
def test_overlapping_paths_conflict_however_they_are_spelled(held: str, wanted: str) -> None:
    assert has_conflict(held, wanted)
    assert has_conflict(wanted, held)


@pytest.mark.parametrize(
    ("held", "wanted"),
    [("src", "src2"), ("src/a", "src/b"), ("src/a*", "docs"), ("../x", "x"), ("/tmp/a", "tmp/a")],
)
def test_similar_but_separate_paths_do_not_conflict(held: str, wanted: str) -> None:
    assert not has_conflict(held, wanted)
    assert not has_conflict(wanted, held)


def test_a_step_may_lock_a_folder_and_a_path_inside_it() -> None:
    locks = WriteLocks()
    locks.acquire("a", write_prefixes(["src", "src/x", "src/x"], ROOT))
    locks.release("a")
    assert locks.find_holder(write_prefixes(["."], ROOT)) is None


paths = st.lists(st.sampled_from("ab"), max_size=3).map(tuple)


@given(st.lists(st.lists(paths, max_size=3, unique=True).map(tuple), max_size=8), st.randoms())
def test_a_holder_is_found_exactly_if_paths_overlap(requests: list[tuple[PathPrefix, ...]], random) -> None:  # type: ignore[no-untyped-def]
    locks, held = WriteLocks(), dict[str, tuple[PathPrefix, ...]]()
    for number, prefixes in enumerate(requests):
        overlapping = {
            name
            for name, theirs in held.items()
            if any(one[: len(other)] == other[: len(one)] for one in prefixes for other in theirs)
        }
        holder = locks.find_holder(prefixes)
        assert (holder in overlapping) if overlapping else (holder is None)
        if holder is None:
            held[str(number)] = prefixes
            locks.acquire(str(number), prefixes)
        if held and random.random() < 0.5:
            released = random.choice(sorted(held))
            locks.release(released)
            del held[released]
