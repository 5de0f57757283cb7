"""Replies of OpenAI-compatible servers, including their quirks."""

import json
from collections.abc import Mapping

import pytest

from agent.model.faults import ModelFault
from agent.model.port import CallDelta, ModelReply, ModelRequest, ReasoningDelta, TextDelta
from agent.model.reply.reply_builder import Fragment, ReplyBuilder
from agent.model.wire.openai_stream import OpenAiReader
from agent.model.wire.sse import SseEvent
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.usage import Usage
from tests.provider.client_harness import no_price, tool_schema

REQUEST = ModelRequest(
    model="m", messages=(Message(role="user", content="hi there"),), tools=(tool_schema("look"), tool_schema("run"))
)


def delta(**fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": fields}]}


def finish(reason: str = "stop") -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def call(arguments: object = "", **fields: object) -> dict[str, object]:
    name = fields.pop("name", None)
    return delta(tool_calls=[{"function": {"name": name, "arguments": arguments}, **fields}])


def read(*chunks: Mapping[str, object], is_done: bool = True) -> tuple[ModelReply, list[Fragment]]:
    builder = ReplyBuilder(REQUEST, no_price)
    reader = OpenAiReader(builder)
    fragments: list[Fragment] = []
    for chunk in chunks:
        fragments += reader.read(SseEvent(name="", data=json.dumps(chunk)))
    if is_done:
        fragments += reader.read(SseEvent(name="", data="[DONE]"))
    reader.finish()
    fragments += builder.flush()
    return builder.build(), fragments


def calls(*chunks: Mapping[str, object], reason: str = "tool_calls") -> list[tuple[str, Mapping[str, object]]]:
    reply, _ = read(*chunks, finish(reason))
    assert all(call.id and call.problem is None for call in reply.message.tool_calls)
    assert len({call.id for call in reply.message.tool_calls}) == len(reply.message.tool_calls)
    return [(call.name, call.arguments) for call in reply.message.tool_calls]


def test_text_and_reasoning_are_separated() -> None:
    reply, fragments = read(delta(reasoning_content="hm"), delta(reasoning="m"), delta(content="yes"), finish())
    assert fragments == [ReasoningDelta(text="hm"), ReasoningDelta(text="m"), TextDelta(text="yes")]
    assert (reply.message.content, reply.message.reasoning, reply.finish_reason) == ("yes", "hmm", "stop")


def test_reasoning_in_the_text_is_not_part_of_the_answer() -> None:
    reply, fragments = read(delta(content="<thi"), delta(content="nk>hm</think>"), delta(content="\n\nyes"), finish())
    assert "".join(part.text for part in fragments if isinstance(part, TextDelta)).strip() == "yes"
    assert (reply.message.content, reply.message.reasoning) == ("yes", "hm")


def test_parallel_calls_are_assembled_by_index() -> None:
    assert calls(
        call(index=0, id="a", name="look"),
        call(index=1, id="b", name="run"),
        call('{"x"', index=0),
        call('{"y": 2}', index=1),
        call(": 1}", index=0),
    ) == [("look", {"x": 1}), ("run", {"y": 2})]


def test_the_arguments_of_parallel_calls_arrive_as_they_are_written() -> None:
    _, fragments = read(
        call(index=0, id="a", name="look"),
        call('{"x"', index=0),
        call('{"y": 2}', index=1, id="b", name="run"),
        call("", index=1),
        call(": 1}", index=0),
        finish("tool_calls"),
    )
    assert fragments == [
        CallDelta(index=0, name="look", text=""),
        CallDelta(index=0, name="look", text='{"x"'),
        CallDelta(index=1, name="run", text='{"y": 2}'),
        CallDelta(index=0, name="look", text=": 1}"),
    ]


def test_complete_calls_without_index_or_id_are_separate_calls() -> None:
    assert calls(call('{"x": 1}', name="look"), call('{"x": 2}', name="look")) == [
        ("look", {"x": 1}),
        ("look", {"x": 2}),
    ]


def test_fragments_without_index_belong_to_the_open_call() -> None:
    assert calls(call(id="a", name="look"), call('{"x":', id="a"), call("1}"), call("{}", id="b", name="run")) == [
        ("look", {"x": 1}),
        ("run", {}),
    ]


def test_complete_calls_that_all_have_the_first_index_are_separate_calls() -> None:
    assert calls(call("{}", index=0, id="a", name="look"), call("{}", index=0, id="b", name="run")) == [
        ("look", {}),
        ("run", {}),
    ]


def test_a_name_repeated_in_every_fragment_is_used_once() -> None:
    assert calls(call('{"x":', index=0, id="a", name="look"), call("1}", index=0, id="a", name="look")) == [
        ("look", {"x": 1})
    ]


def test_arguments_sent_as_an_object_are_parsed() -> None:
    assert calls(call({"x": 1}, index=0, name="look"), reason="stop") == [("look", {"x": 1})]


def test_a_call_written_as_text_becomes_a_call() -> None:
    text = '<tool_call>{"name": "look", "arguments": {"x": 1}}</tool_call>'
    assert calls(delta(content=text), reason="stop") == [("look", {"x": 1})]


def test_a_call_without_a_name_has_a_problem() -> None:
    reply, _ = read(call("{}", index=0, id="a"), finish("tool_calls"))
    (nameless,) = reply.message.tool_calls
    assert nameless == ToolCall(id="a", name="", problem=nameless.problem)
    assert "names no tool" in str(nameless.problem)


def test_usage_is_parsed_with_its_details() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 15},
    }
    reply, _ = read(delta(content="yes"), finish(), {"choices": [], "usage": usage})
    assert reply.usage == Usage(
        input_tokens=100, output_tokens=20, cache_read_tokens=60, reasoning_tokens=15, requests=1, cost_usd=None
    )


@pytest.mark.parametrize(
    ("usage", "cached", "written"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30}}, 60, 30),
        ({"prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40}, 60, 0),
        ({"prompt_tokens_details": {"cached_tokens": 60}, "cache_creation_input_tokens": 30}, 60, 30),
    ],
    ids=["openrouter", "deepseek", "litellm"],
)
def test_cache_reads_and_writes_are_counted(usage: dict[str, object], cached: int, written: int) -> None:
    counts = {"prompt_tokens": 100, "completion_tokens": 1, **usage}
    reply, _ = read(delta(content="yes"), finish(), {"choices": [], "usage": counts})
    assert (reply.usage.cache_read_tokens, reply.usage.cache_write_tokens) == (cached, written)


def test_a_cost_reported_by_the_provider_is_used() -> None:
    reply, _ = read(delta(content="yes"), finish(), {"usage": {"prompt_tokens": 1, "cost": 0.25}})
    assert reply.usage.cost_usd == 0.25


def test_missing_usage_is_estimated() -> None:
    reply, _ = read(delta(content="yes and no"), finish())
    assert (reply.usage.output_tokens, reply.usage.requests) == (3, 1)
    assert reply.usage.input_tokens > 0


def test_the_price_is_looked_up_by_the_requested_model() -> None:
    builder = ReplyBuilder(REQUEST, lambda model, usage: {"m": 0.5}[model])
    reader = OpenAiReader(builder)
    reader.read(SseEvent(name="", data=json.dumps(delta(content="yes"))))
    assert builder.build().usage.cost_usd == 0.5


def test_a_finished_reply_needs_no_done() -> None:
    reply, _ = read(delta(content="yes"), finish(), is_done=False)
    assert reply.message.content == "yes"


def test_a_reply_that_was_not_streamed_is_parsed() -> None:
    function = {"name": "look", "arguments": "{}"}
    message = {"content": "so", "tool_calls": [{"id": "a", "function": function}]}
    builder = ReplyBuilder(REQUEST, no_price)
    reader = OpenAiReader(builder)
    reader.read_full({"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 3}})
    reply = builder.build()
    assert reply.message == Message(role="assistant", content="so", tool_calls=(ToolCall(id="a", name="look"),))


def test_mistrals_list_of_parts_is_parsed() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]
    reply, _ = read(delta(content=parts), finish())
    assert (reply.message.content, reply.message.reasoning) == ("yes", "hm")


@pytest.mark.parametrize(
    ("chunks", "kind"),
    [
        ([finish()], "empty"),
        ([delta(content="  \n"), finish()], "empty"),
        ([delta(reasoning="hm"), finish("length")], "empty"),
        ([finish("content_filter")], "filtered"),
        ([{"error": {"message": "boom"}}], "server"),
        ([{"choices": [{"delta": {}, "finish_reason": "error"}]}], "server"),
    ],
)
def test_a_reply_without_an_answer_is_a_fault(chunks: list[dict[str, object]], kind: str) -> None:
    with pytest.raises(ModelFault) as caught:
        read(*chunks)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    "chunk",
    [{"choices": None}, {"choices": [None]}, {"choices": [{"delta": None}]}, {"usage": 7}, delta(tool_calls="x")],
)
def test_unknown_chunks_are_ignored(chunk: dict[str, object]) -> None:
    reply, _ = read(chunk, delta(content="yes"), finish())
    assert reply.message.content == "yes"
