"""Parsing plans while they stream."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.planning.plan_reader import PlanReader

PLAN = {"steps": [{"id": "a", "instruction": "do {a}"}, {"id": "b", "instruction": "}{", "depends_on": ["a"]}]}


@given(st.lists(st.integers(1, 20), min_size=1))
def test_steps_are_complete_however_the_reply_is_split(sizes: list[int]) -> None:
    text, reader, found = json.dumps(PLAN), PlanReader(), []
    position = 0
    while position < len(text):
        size = sizes[position % len(sizes)]
        found += reader.feed(text[position : position + size])
        position += size
    assert found == PLAN["steps"]
    assert list(reader.finish(text).steps) == PLAN["steps"]


def test_the_first_step_is_known_before_the_plan_is_complete() -> None:
    reader = PlanReader()
    assert reader.feed('{"steps": [{"id": "a", "instruction": "x"}') == [{"id": "a", "instruction": "x"}]


@pytest.mark.parametrize(
    "reply",
    [
        json.dumps(PLAN),
        f"```json\n{json.dumps(PLAN)}\n```",
        f"Here is the plan:\n\n{json.dumps(PLAN, indent=2)}\n\nGood luck!",
        json.dumps({"plan": PLAN["steps"]}),
        json.dumps({"plan": PLAN}),
        json.dumps(PLAN["steps"]),
    ],
)
def test_fences_prose_and_other_keys_are_tolerated(reply: str) -> None:
    assert list(PlanReader().finish(reply).steps) == PLAN["steps"]


def test_a_reply_with_repairable_json_is_repaired() -> None:
    assert list(PlanReader().finish("{'steps': [{'id': 'a', 'instruction': 'x',},]}").steps) == [
        {"id": "a", "instruction": "x"}
    ]


def test_a_direct_answer_is_recognized() -> None:
    assert PlanReader().finish('{"answer": " 42 "}').answer == "42"


def test_any_number_of_values_that_are_no_steps_is_skipped() -> None:
    assert PlanReader().feed('{"steps": [' + "1, " * 5_000 + '{"id": "a"}') == [{"id": "a"}]


@pytest.mark.parametrize("opening", ['{"steps": [' + "[" * 5_000, '{"a":' * 5_000, "[" * 5_000])
def test_deeply_nested_brackets_are_no_plan(opening: str) -> None:
    reader = PlanReader()
    assert (reader.feed(opening + "}"), reader.finish(opening + "}").steps) == ([], ())


@pytest.mark.parametrize("reply", ["", "I cannot plan this.", "{", '{"steps": []}', '{"answer": ""}', "[1, 2]", "{}"])
def test_a_reply_without_a_plan_gives_neither_steps_nor_an_answer(reply: str) -> None:
    parsed = PlanReader().finish(reply)
    assert (parsed.answer, parsed.steps) == (None, ())
