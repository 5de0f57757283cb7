"""Absurd values in replies: numbers, dates and nesting that no honest server sends."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model.fault_mapping import fault_from_error, fault_from_status
from agent.model.faults import ModelFault
from agent.model.json_values import count_at
from agent.model.port import ModelRequest
from agent.model.reply.call_arguments import parse_arguments
from agent.model.reply.reply_builder import ReplyBuilder
from agent.model.wire.anthropic_stream import AnthropicReader
from agent.model.wire.openai_stream import OpenAiReader
from agent.model.wire.sse import SseEvent, SseParser
from tests.examples import examples

NUMBERS = st.one_of(st.integers(), st.floats(), st.sampled_from([10**400, -(10**400), True, None, "1e400", "x"]))
VALUES = st.recursive(
    st.one_of(NUMBERS, st.text(max_size=8), st.booleans()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    (
        "choices",
        "delta",
        "message",
        "content",
        "usage",
        "error",
        "type",
        "index",
        "text",
        "tool_calls",
        "function",
        "arguments",
        "name",
        "id",
        "finish_reason",
        "stop_reason",
        "input",
        "prompt_tokens",
        "cost",
        "code",
        "thinking",
        "content_block",
        "partial_json",
        "refusal",
        "output_tokens",
        "input_tokens",
        "status",
        "metadata",
        "raw",
    )
)
OBJECTS = st.recursive(
    st.dictionaries(FIELDS, VALUES, max_size=4),
    lambda inner: st.dictionaries(FIELDS, inner | st.lists(inner, max_size=2) | VALUES, max_size=4),
    max_leaves=12,
)
TYPES = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop", "error", "text"]
)


@pytest.mark.parametrize(
    "date", ["Fri, 31 Dec 99999 23:59:59 GMT", "Mon, 00 Jan 0000 00:00:00 GMT", "1e400", "9" * 400, "²", "soon", ", ,"]
)
def test_a_retry_after_with_an_absurd_date_is_ignored(date: str) -> None:
    fault = fault_from_status(429, b"", {"retry-after": date, "retry-after-ms": "²"})
    assert (fault.kind, fault.retry_after_s) == ("rate_limit", None)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -1, 10**400, "7", None, 1e300])
def test_a_count_that_cannot_be_one_is_zero(value: object) -> None:
    assert count_at({"prompt_tokens": value}, "prompt_tokens") == 0


@pytest.mark.parametrize("depth", [65, 900, 100_000])
def test_arguments_nested_without_end_are_reported_to_the_model(depth: int) -> None:
    arguments, problem = parse_arguments('{"path": ' + "[" * depth + "]" * depth + "}")
    assert (arguments, bool(problem)) == ({}, True)


@examples(1500)
@given(frames=st.lists(OBJECTS, max_size=4), kinds=st.lists(TYPES, min_size=4, max_size=4), is_full=st.booleans())
def test_any_reply_is_a_reply_or_a_fault(
    frames: list[dict[str, object]],
    kinds: list[str],
    is_full: bool,
) -> None:
    for reader_type in (OpenAiReader, AnthropicReader):
        builder = ReplyBuilder(ModelRequest(model="m", messages=()), lambda model, usage: 0.0)
        reader = reader_type(builder)
        try:
            for frame, kind in zip(frames, kinds, strict=False):
                data = {"type": kind, **frame}
                if is_full:
                    reader.read_full(data)
                else:
                    reader.read(SseEvent(name=kind, data=json.dumps(data)))
            reader.finish()
            builder.build()
        except ModelFault:
            continue


@examples(1500)
@given(body=st.one_of(OBJECTS.map(json.dumps), st.text(max_size=60)), status=st.integers(300, 599))
def test_any_error_is_a_fault(body: str, status: int) -> None:
    fault_from_status(status, body.encode("utf-8", "replace"), {})
    try:
        fault_from_error(json.loads(body))
    except ValueError:
        return


@examples(1500)
@given(data=st.lists(st.binary(max_size=40) | st.sampled_from([b"data: {}\n\n", b"event: x\n", b"\r\n", b": \n"])))
def test_any_bytes_are_events_wherever_they_are_split(data: list[bytes]) -> None:
    whole, split = SseParser(), SseParser()
    expected = [*whole.feed(b"".join(data)), *whole.finish()]
    found = [event for part in data for event in split.feed(part)] + split.finish()
    assert found == expected
