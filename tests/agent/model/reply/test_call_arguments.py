"""Arguments of a tool call are repaired if unambiguous, and the problem is described otherwise."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.model.reply.call_arguments import parse_arguments
from tests.examples import examples

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), JSON_VALUES, max_size=4)


@pytest.mark.parametrize("text", ["", "   ", "\n", "{}", "```json\n{}\n```"])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    assert parse_arguments(text) == ({}, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}```', {"a": 1}),
        ('{"a": [1, 2,], "b": "x,]",}', {"a": [1, 2], "b": "x,]"}),
        ("{'a': 'it''s', 'b': None, 'c': True}", {"a": "its", "b": None, "c": True}),
        ("{'a': true, 'b': [null, false]}", {"a": True, "b": [None, False]}),
        ("{'a': (1, 2)}", {"a": [1, 2]}),
        ('{"content": "one\ntwo\tthree"}', {"content": "one\ntwo\tthree"}),
        (json.dumps(json.dumps({"a": "b"})), {"a": "b"}),
        ('{"path": "a.txt", "content": "b"', {"path": "a.txt", "content": "b"}),
        ('{"a": {"b": [1]}', {"a": {"b": [1]}}),
        ('{"a": true', {"a": True}),
        ('{"a": "b"}}', {"a": "b"}),
        (r'{"pattern": "\d+\.py"}', {"pattern": r"\d+\.py"}),
    ],
)
def test_unambiguous_arguments_are_repaired(text: str, expected: object) -> None:
    assert parse_arguments(text) == (expected, None)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ('{"path": "a.txt", "content": "half of', "end inside a string"),
        ('{"path": "a.txt", "content"', "not closed|before 1 bracket"),
        ('{"path": "a.txt", "content":', "before 1 bracket"),
        ('{"path": "a.txt",', "before 1 bracket"),
        ('{"count": 12', "before 1 bracket"),
        ('{"a": {"b": "c"', "before 2 bracket"),
        ('{"a": 1} and then', "Extra data at line 1, column 10"),
        ("path=a.txt", "Expecting value at line 1, column 1, near 'path=a.txt'"),
        ("[1, 2]", "are a list, not a JSON object"),
        ('"just text"', "are text, not a JSON object"),
        ("12", "are a number"),
        ("null", "are null"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1e999}', "not usable JSON"),
        (r'{"path": "C:\dir\new"}', r"Invalid \\escape"),
        ('{"a": "\\ud800"}', "lone surrogate"),
        ("{'a': {1, 2}}", "not valid JSON"),
        ("{1: 2}", "not valid JSON"),
        ("__import__('os')", "not valid JSON"),
        ("[" * 100_000, "not "),
        ('{"a": ' + "9" * 5000 + "}", "not usable JSON"),
    ],
)
def test_the_problem_of_ambiguous_arguments_is_described(text: str, pattern: str) -> None:
    arguments, problem = parse_arguments(text)
    assert arguments == {}
    assert problem is not None
    assert re.search(pattern, problem)
    assert "one JSON object" in problem
    assert len(problem) < 400


@given(OBJECTS)
def test_every_json_object_is_parsed(value: dict[str, object]) -> None:
    assert parse_arguments(json.dumps(value)) == (value, None)


@given(OBJECTS)
@example({"'\x1f": []})
@example({"'\U000e0001": []})
def test_python_literals_are_parsed(value: dict[str, object]) -> None:
    assert parse_arguments(repr(value)) == (value, None)


@examples(200)
@given(OBJECTS.filter(bool), st.data())
def test_a_truncated_object_is_never_silently_empty(value: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    arguments, problem = parse_arguments(cut)
    assert (problem is None and arguments) or (problem and not arguments)


@examples(300)
@given(st.text(alphabet="{}[]\",:\\'` ntrue1\n") | st.text())
def test_no_text_raises(text: str) -> None:
    arguments, problem = parse_arguments(text)
    assert problem is None or arguments == {}
