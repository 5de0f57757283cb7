"""Events are parsed however the bytes are split."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model.faults import ModelFault
from agent.model.wire.sse import SseEvent, SseParser, parse_json_object

STREAM = (
    "event: greeting\r\ndata: grüße 🌍\r\n\r\n: a comment\n\ndata: one\ndata: two\nid: 7\n\ndata:[DONE]\n\n".encode()
)
EVENTS = [
    SseEvent(name="greeting", data="grüße 🌍"),
    SseEvent(name="", data="one\ntwo"),
    SseEvent(name="", data="[DONE]"),
]


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM))))
def test_events_do_not_depend_on_where_the_bytes_are_split(cuts: list[int]) -> None:
    parser, events = SseParser(), []
    places = [0, *sorted(cuts), len(STREAM)]
    for start, end in pairwise(places):
        events += parser.feed(STREAM[start:end])
    assert [*events, *parser.finish()] == EVENTS


def test_an_event_without_its_empty_line_is_emitted_at_the_end() -> None:
    parser = SseParser()
    assert parser.feed(b"data: last") == []
    assert parser.finish() == [SseEvent(name="", data="last")]


def test_an_error_field_is_parsed() -> None:
    assert SseParser().feed(b'error: {"code": 500}\n\n') == [SseEvent(name="", data='{"error": {"code": 500}}')]


def test_an_endless_line_is_a_fault() -> None:
    parser = SseParser(max_event_bytes=100)
    with pytest.raises(ModelFault) as caught:
        for _ in range(20):
            parser.feed(b"data: xxxx")
    assert caught.value.kind == "malformed"


def test_many_small_events_do_not_reach_the_limit() -> None:
    parser = SseParser(max_event_bytes=100)
    assert sum(len(parser.feed(b"data: x\n\n")) for _ in range(1000)) == 1000


@pytest.mark.parametrize("text", ['{"half": ', "[1]", "", "[" * 100_000])
def test_data_that_is_not_an_object_is_malformed(text: str) -> None:
    with pytest.raises(ModelFault) as caught:
        parse_json_object(text)
    assert caught.value.kind == "malformed"
