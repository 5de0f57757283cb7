"""A lazy pattern is used like a compiled one."""

import re

import pytest

from tooling.contract.lazy_pattern import lazy_pattern


def test_a_lazy_pattern_has_the_methods_and_attributes_of_a_compiled_one() -> None:
    words, compiled = lazy_pattern(r"[a-z]+", re.IGNORECASE), re.compile(r"[a-z]+", re.IGNORECASE)
    for _ in range(2):
        assert words.findall("One two") == ["One", "two"]
    assert words.sub("-", "a1b") == "-1-"
    assert (words.pattern, words.flags, words.groups) == (compiled.pattern, compiled.flags, compiled.groups)
    assert lazy_pattern(rb"\d").search(b"a1") is not None


def test_a_mistake_in_a_lazy_pattern_shows_at_its_first_use() -> None:
    broken = lazy_pattern("(")
    with pytest.raises(re.error):
        broken.search("x")
