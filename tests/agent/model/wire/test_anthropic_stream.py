"""Replies in Anthropic's format."""

import json

import pytest

from agent.model.faults import ModelFault
from agent.model.port import PAUSED, CallDelta, ModelReply, ModelRequest, ReasoningDelta, TextDelta
from agent.model.reply.reply_builder import Fragment, ReplyBuilder
from agent.model.wire.anthropic_stream import AnthropicReader
from agent.model.wire.sse import SseParser
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.usage import Usage
from tests.provider.anthropic_frames import frame, frames, response_body
from tests.provider.client_harness import no_price
from tests.provider.replies import Reply, Tokens

REQUEST = ModelRequest(model="anthropic/m", messages=(Message(role="user", content="hi"),))


def read(*stream: bytes) -> tuple[ModelReply, list[Fragment]]:
    builder, parser = ReplyBuilder(REQUEST, no_price), SseParser()
    reader = AnthropicReader(builder)
    fragments = [part for chunk in stream for event in parser.feed(chunk) for part in reader.read(event)]
    reader.finish()
    return builder.build(), [*fragments, *builder.flush()]


def test_reasoning_text_and_parallel_calls_are_parsed_from_one_stream() -> None:
    reply, fragments = read(
        *frames(
            Reply(
                reasoning="hm, both",
                signature="c2ln",
                text="I will.",
                calls=(("look", {}), ("run", {"x": [1, 2]})),
                usage=Tokens(prompt=10, cached=60, written=30, completion=7),
            ),
            "m",
        )
    )
    assert reply == ModelReply(
        message=Message(
            role="assistant",
            content="I will.",
            tool_calls=(
                ToolCall(id="toolu_1_0", name="look"),
                ToolCall(id="toolu_1_1", name="run", arguments={"x": [1, 2]}),
            ),
            reasoning="hm, both",
            reasoning_signature="c2ln",
            reasoning_model="anthropic/m",
        ),
        usage=Usage(
            input_tokens=100,
            output_tokens=7,
            cache_read_tokens=60,
            cache_write_tokens=30,
            requests=1,
            cost_usd=None,
        ),
        model="anthropic/m",
        finish_reason="tool_calls",
    )
    said = [part for part in fragments if not isinstance(part, CallDelta)]
    assert said == [ReasoningDelta(text="hm, both"), TextDelta(text="I will.")]


def test_the_arguments_of_a_call_arrive_as_they_are_written() -> None:
    block = {"type": "tool_use", "id": "t", "name": "write_file", "input": {}}
    _, fragments = read(
        frame({"type": "content_block_start", "index": 1, "content_block": block}),
        *(
            frame({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": p}})
            for p in ("", '{"path": "a', '.txt"}')
        ),
        frame({"type": "message_stop"}),
    )
    assert fragments == [
        CallDelta(index=0, name="write_file", text=""),
        CallDelta(index=0, name="write_file", text='{"path": "a'),
        CallDelta(index=0, name="write_file", text='.txt"}'),
    ]


def test_several_reasoning_blocks_are_stored_unchanged() -> None:
    reply, _ = read(
        frame({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        frame({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "a"}}),
        frame({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}}),
        frame({"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "d"}}),
        frame({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "yes"}}),
        frame({"type": "message_stop"}),
    )
    assert json.loads(str(reply.message.reasoning_signature)) == [
        {"type": "thinking", "thinking": "a", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
    ]


def test_a_reply_that_was_not_streamed_is_parsed() -> None:
    builder = ReplyBuilder(REQUEST, no_price)
    AnthropicReader(builder).read_full(response_body(Reply(text="so", calls=(("look", {"x": 1}),)), "m"))
    reply = builder.build()
    call = ToolCall(id="toolu_1_0", name="look", arguments={"x": 1})
    assert reply.message == Message(role="assistant", content="so", tool_calls=(call,))
    assert reply.usage.total_tokens == 110


def test_a_paused_turn_is_not_a_complete_answer() -> None:
    start = frame({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "One, "}})
    reply, _ = read(start, frame({"type": "message_delta", "delta": {"stop_reason": "pause_turn"}}))
    assert (reply.message.content, reply.is_incomplete, reply.finish_reason) == ("One, ", True, PAUSED)


def test_unknown_events_are_ignored() -> None:
    strange = (
        frame({"type": "mood_changed", "index": 0}),
        frame({"type": "content_block_delta", "delta": {"type": "x"}}),
    )
    reply, _ = read(*strange, *frames(Reply(text="yes"), "m"))
    assert reply.message.content == "yes"


@pytest.mark.parametrize(
    ("stream", "kind"),
    [
        (list(frames(Reply(text="a long answer that breaks off"), "m"))[:-2], "reset"),
        (list(frames(Reply(), "m")), "empty"),
        ([frame({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})], "overloaded"),
        ([frame({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}})], "refused"),
        ([frame({"type": "message_delta", "delta": {"stop_reason": "refusal"}})], "filtered"),
        ([b'event: ping\ndata: {"type": "pi\n\n'], "malformed"),
    ],
)
def test_a_reply_without_an_answer_is_a_fault(stream: list[bytes], kind: str) -> None:
    with pytest.raises(ModelFault) as caught:
        read(*stream)
    assert caught.value.kind == kind
