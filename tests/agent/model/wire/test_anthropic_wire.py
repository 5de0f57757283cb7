"""Requests in Anthropic's format."""

import json
from dataclasses import replace

import pytest

from agent.model.port import ModelRequest
from agent.model.providers import Endpoint
from agent.model.wire import anthropic_wire
from agent.vocabulary.message import Message, ToolCall
from tests.provider.client_harness import tool_schema
from tooling.contract.image import Image

SHOT = Image(sha256="aa", media_type="image/png", width=4, height=3, size=9, name="shot.png")
PLOT = Image(sha256="bb", media_type="image/jpeg", width=4, height=3, size=9, name="plot.jpg")
WITH_IMAGES = ModelRequest(
    model="m",
    messages=(
        Message(role="user", content="what is it?", images=(SHOT,)),
        Message(role="assistant", tool_calls=(ToolCall(id="c1", name="look"), ToolCall(id="c2", name="look"))),
        Message(role="tool", tool_call_id="c1", content="image/jpeg 4x3", images=(PLOT,)),
        Message(role="tool", tool_call_id="c2", content="text"),
        Message(role="user", content="go on"),
    ),
    image_data={"aa": "QUE=", "bb": "QkI="},
)
ENDPOINT = Endpoint(
    provider="anthropic", wire="anthropic", base_url="https://api.anthropic.com/v1", key="k", model="claude-x"
)
CACHED = {"cache_control": {"type": "ephemeral"}}
CONVERSATION = ModelRequest(
    model="anthropic/claude-x",
    messages=(
        Message(role="system", content="be brief"),
        Message(role="system", content="be kind"),
        Message(role="user", content="look and run"),
        Message(
            role="assistant",
            content="I will. ",
            tool_calls=(ToolCall(id="c:1", name="look"), ToolCall(id="c2", name="run", arguments={"x": 1})),
            reasoning="both at once",
            reasoning_signature="c2lnbmVk",
            reasoning_model="anthropic/claude-x",
        ),
        Message(role="tool", tool_call_id="c:1", content="seen"),
        Message(role="tool", tool_call_id="c2"),
        Message(role="user", content="go on"),
    ),
    tools=(tool_schema("look"), tool_schema("run", {"x": {"type": "integer"}})),
)


def test_a_conversation_has_its_blocks_and_four_cache_breakpoints() -> None:
    assert anthropic_wire.body(CONVERSATION, ENDPOINT) == {
        "model": "claude-x",
        "max_tokens": 8192,
        "stream": True,
        "system": [{"type": "text", "text": "be brief"}, {"type": "text", "text": "be kind", **CACHED}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "look and run", **CACHED}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "both at once", "signature": "c2lnbmVk"},
                    {"type": "text", "text": "I will."},
                    {"type": "tool_use", "id": "c_1", "name": "look", "input": {}},
                    {"type": "tool_use", "id": "c2", "name": "run", "input": {"x": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c_1", "content": "seen"},
                    {"type": "tool_result", "tool_use_id": "c2"},
                    {"type": "text", "text": "go on", **CACHED},
                ],
            },
        ],
        "tools": [
            {"name": "look", "description": "do look", "input_schema": {"type": "object", "properties": {}}},
            {
                "name": "run",
                "description": "do run",
                "input_schema": {"type": "object", "properties": {"x": {"type": "integer"}}},
                **CACHED,
            },
        ],
    }


def test_unsigned_reasoning_and_empty_turns_are_omitted() -> None:
    messages = (
        Message(role="user", content="hi"),
        Message(role="assistant", content="", reasoning="unsigned"),
        Message(role="user", content="still there?"),
    )
    body = anthropic_wire.body(ModelRequest(model="m", messages=messages), ENDPOINT)
    texts: list[dict[str, object]] = [
        {"type": "text", "text": "hi"},
        {"type": "text", "text": "still there?", **CACHED},
    ]
    assert body["messages"] == [{"role": "user", "content": texts}]


def test_several_reasoning_blocks_are_sent_back_unchanged() -> None:
    thoughts = [{"type": "thinking", "thinking": "a", "signature": "s"}, {"type": "redacted_thinking", "data": "d"}]
    message = Message(
        role="assistant", content="yes", reasoning="a", reasoning_signature=json.dumps(thoughts), reasoning_model="m"
    )
    body = anthropic_wire.body(ModelRequest(model="m", messages=(message,)), ENDPOINT)
    assert body["messages"] == [{"role": "assistant", "content": [*thoughts, {"type": "text", "text": "yes"}]}]


def test_reasoning_signed_by_another_model_is_omitted() -> None:
    for origin in ("anthropic/claude-y", "openrouter/anthropic/claude-x", None):
        messages = tuple(
            replace(message, reasoning_model=origin) if message.reasoning_signature else message
            for message in CONVERSATION.messages
        )
        body = anthropic_wire.body(replace(CONVERSATION, messages=messages), ENDPOINT)
        assert "c2lnbmVk" not in json.dumps(body)


def test_limits_are_sent_when_set() -> None:
    body = anthropic_wire.body(replace(CONVERSATION, max_output_tokens=5, temperature=0.5), ENDPOINT)
    assert (body["max_tokens"], body["temperature"]) == (5, 0.5)


ADAPTIVE = {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "medium"}}


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("claude-opus-4-6", ADAPTIVE),
        ("claude-sonnet-5", ADAPTIVE),
        ("claude-haiku-5-5", ADAPTIVE),
        ("claude-mythos-preview", ADAPTIVE),
        ("claude-sonnet-4-5-20250929", {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        ("claude-sonnet-4-20250514", {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        ("claude-3-7-sonnet-latest", {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
    ],
)
def test_a_model_gets_an_effort_or_a_number_of_tokens_for_thinking(model: str, options: dict[str, object]) -> None:
    endpoint, messages = replace(ENDPOINT, model=model), (Message(role="user", content="hi"),)
    request = ModelRequest(model=f"anthropic/{model}", messages=messages, reasoning="medium", temperature=0.5)
    body = anthropic_wire.body(request, endpoint)
    assert {name: body.get(name) for name in ("thinking", "output_config", "temperature") if name in body} == options


def test_thinking_leaves_room_for_the_answer() -> None:
    endpoint, messages = replace(ENDPOINT, model="claude-haiku-4-5"), (Message(role="user", content="hi"),)

    def budget(limit: int) -> object:
        request = ModelRequest(model="m", messages=messages, reasoning="high", max_output_tokens=limit)
        return anthropic_wire.body(request, endpoint).get("thinking")

    assert budget(1024) is None
    assert budget(1100) == {"type": "enabled", "budget_tokens": 1024}
    assert budget(8000) == {"type": "enabled", "budget_tokens": 6000}


def test_a_turn_that_another_model_began_is_continued_without_a_budget_for_thinking() -> None:
    request = replace(CONVERSATION, messages=CONVERSATION.messages[:-1], reasoning="low")
    endpoint = replace(ENDPOINT, model="claude-haiku-4-5")
    assert "thinking" in anthropic_wire.body(request, endpoint)
    assert "thinking" not in anthropic_wire.body(replace(request, model="anthropic/other"), endpoint)


def test_without_reasoning_earlier_thoughts_are_omitted() -> None:
    body = anthropic_wire.body(replace(CONVERSATION, reasoning="off", temperature=0.5), ENDPOINT)
    assert (body["thinking"], body["temperature"]) == ({"type": "disabled"}, 0.5)
    assert "c2lnbmVk" not in json.dumps(body)


def test_the_url_is_completed() -> None:
    for base in ("https://x", "https://x/v1", "https://x/v1/messages"):
        assert anthropic_wire.url(replace(ENDPOINT, base_url=base)) == "https://x/v1/messages"


def test_key_and_version_are_sent_as_headers() -> None:
    assert anthropic_wire.headers(ENDPOINT) == {"anthropic-version": "2023-06-01", "x-api-key": "k"}
    assert anthropic_wire.headers(replace(ENDPOINT, key="")) == {"anthropic-version": "2023-06-01"}


def test_images_are_blocks_also_inside_results() -> None:
    shot = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUE="}}
    plot = {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "QkI="}}
    seen = [{"type": "text", "text": "image/jpeg 4x3"}, plot]
    assert anthropic_wire.body(WITH_IMAGES, ENDPOINT)["messages"] == [
        {"role": "user", "content": [shot, {"type": "text", "text": "what is it?", **CACHED}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": id, "name": "look", "input": {}} for id in ("c1", "c2")],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": seen},
                {"type": "tool_result", "tool_use_id": "c2", "content": "text"},
                {"type": "text", "text": "go on", **CACHED},
            ],
        },
    ]
