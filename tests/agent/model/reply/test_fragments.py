"""Fragments that arrive together are passed on together."""

from collections.abc import Iterator

import pytest

from agent.model.faults import ModelFault
from agent.model.port import CallDelta, ReasoningDelta, TextDelta
from agent.model.reply.reply_builder import Fragment, join_fragments

CALL = CallDelta(index=0, name="ls", text='{"a"')


def test_neighbors_of_one_kind_are_joined_in_their_order() -> None:
    fragments: list[Fragment] = [
        *(ReasoningDelta(text="so"), ReasoningDelta(text=" it is")),
        *(TextDelta(text="I"), TextDelta(text=" look")),
        *(CALL, CallDelta(index=0, name="ls", text=": 1}"), CallDelta(index=1, name="ls", text="{}")),
        TextDelta(text="done"),
    ]
    assert list(join_fragments(fragments)) == [
        ReasoningDelta(text="so it is"),
        TextDelta(text="I look"),
        CallDelta(index=0, name="ls", text='{"a": 1}'),
        CallDelta(index=1, name="ls", text="{}"),
        TextDelta(text="done"),
    ]
    assert list(join_fragments([])) == []


def test_what_came_before_a_fault_is_passed_on_before_it() -> None:
    def broken() -> Iterator[Fragment]:
        yield TextDelta(text="half ")
        yield TextDelta(text="an answer")
        raise ModelFault("malformed")

    joined = join_fragments(broken())
    assert next(joined) == TextDelta(text="half an answer")
    with pytest.raises(ModelFault):
        next(joined)
