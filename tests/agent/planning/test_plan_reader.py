"""Plans as they stream."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.planning.plan_reader import PlanReader

PLAN = {"steps": [{"id": "a", "instruction": "do {a}"}, {"id": "b", "instruction": "}{", "depends_on": ["a"]}]}


@given(st.lists(st.integers(1, 20), min_size=1))
def test_steps_come_out_whole_however_the_reply_is_cut(sizes: list[int]) -> None:
    text, reader, found = json.dumps(PLAN), PlanReader(), []
    place = 0
    while place < len(text):
        size = sizes[place % len(sizes)]
        found += reader.feed(text[place : place + size])
        place += size
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
def test_fences_prose_and_near_misses_do_no_harm(reply: str) -> None:
    assert list(PlanReader().finish(reply).steps) == PLAN["steps"]


def test_a_reply_with_repairable_json_is_repaired() -> None:
    assert list(PlanReader().finish("{'steps': [{'id': 'a', 'instruction': 'x',},]}").steps) == [
        {"id": "a", "instruction": "x"}
    ]


def test_a_direct_answer_is_recognised() -> None:
    assert PlanReader().finish('{"answer": " 42 "}').answer == "42"


def test_what_is_no_step_is_passed_over_however_much_of_it_there_is() -> None:
    assert PlanReader().feed('{"steps": [' + "1, " * 5_000 + '{"id": "a"}') == [{"id": "a"}]


@pytest.mark.parametrize("opening", ['{"steps": [' + "[" * 5_000, '{"a":' * 5_000, "[" * 5_000])
def test_brackets_without_end_are_no_plan(opening: str) -> None:
    reader = PlanReader()
    assert (reader.feed(opening + "}"), reader.finish(opening + "}").steps) == ([], ())


@pytest.mark.parametrize("reply", ["", "I cannot plan this.", "{", '{"steps": []}', '{"answer": ""}', "[1, 2]", "{}"])
def test_a_reply_without_a_plan_gives_neither_steps_nor_an_answer(reply: str) -> None:
    whole = PlanReader().finish(reply)
    assert (whole.answer, whole.steps) == (None, ())
