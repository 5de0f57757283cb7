"""Requests in OpenAI's format."""

from dataclasses import replace

import pytest

from agent.model.port import ModelRequest
from agent.model.providers import Endpoint
from agent.model.wire import openai_wire
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
ENDPOINT = Endpoint(provider="openai", wire="openai", base_url="https://x/v1", key="k", model="gpt-4o")
CONVERSATION = ModelRequest(
    model="openai/gpt-4o",
    messages=(
        Message(role="system", content="be brief"),
        Message(role="user", content="grüße"),
        Message(
            role="assistant",
            tool_calls=(ToolCall(id="c1", name="look", arguments={"at": "ü"}),),
            reasoning="I must look",
        ),
        Message(role="tool", tool_call_id="c1", content="seen"),
    ),
    tools=(tool_schema("look"),),
)


def test_a_conversation_includes_calls_and_results() -> None:
    function = {"name": "look", "arguments": '{"at": "ü"}'}
    assert openai_wire.body(CONVERSATION, ENDPOINT) == {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "grüße"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            },
            {"role": "tool", "content": "seen", "tool_call_id": "c1"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [tool_schema("look")],
    }


def test_limits_are_sent_only_when_set() -> None:
    request = replace(CONVERSATION, tools=(), max_output_tokens=100, temperature=0.0)
    body = openai_wire.body(request, ENDPOINT)
    assert (body["max_tokens"], body["temperature"], "tools" in body) == (100, 0.0, False)


def test_openais_reasoning_models_use_max_completion_tokens() -> None:
    for model in ("o3-mini", "o4", "gpt-5", "gpt-5.2-codex"):
        body = openai_wire.body(replace(CONVERSATION, max_output_tokens=9), replace(ENDPOINT, model=model))
        assert body["max_completion_tokens"] == 9
        assert "max_tokens" not in body
    elsewhere = replace(ENDPOINT, provider="api_base", model="gpt-5-clone")
    assert openai_wire.body(replace(CONVERSATION, max_output_tokens=9), elsewhere)["max_tokens"] == 9


def test_mistral_gets_no_stream_options() -> None:
    assert "stream_options" not in openai_wire.body(CONVERSATION, replace(ENDPOINT, provider="mistral"))


def test_deepseek_gets_the_reasoning_of_tool_calling_turns_back() -> None:
    def turn(provider: str) -> object:
        messages = openai_wire.body(CONVERSATION, replace(ENDPOINT, provider=provider))["messages"]
        assert isinstance(messages, list)
        return messages[2].get("reasoning_content")

    assert (turn("deepseek"), turn("openai")) == ("I must look", None)


def test_deepseek_does_not_get_the_signed_reasoning_of_another_provider() -> None:
    signed = replace(CONVERSATION.messages[2], reasoning_signature="c2ln", reasoning_model="anthropic/claude-x")
    request = replace(CONVERSATION, messages=(*CONVERSATION.messages[:2], signed))
    messages = openai_wire.body(request, replace(ENDPOINT, provider="deepseek"))["messages"]
    assert isinstance(messages, list)
    assert messages[2]["reasoning_content"] == ""


def test_only_openai_itself_gets_the_cache_key() -> None:
    request = replace(CONVERSATION, cache_key="session-1")

    def key(endpoint: Endpoint) -> object:
        return openai_wire.body(request, endpoint).get("prompt_cache_key")

    at_openai = replace(ENDPOINT, base_url="https://api.openai.com/v1")
    assert key(at_openai) == "session-1"
    assert key(ENDPOINT) is None
    assert key(replace(ENDPOINT, provider="groq", base_url="https://api.groq.com/openai/v1")) is None
    assert "prompt_cache_key" not in openai_wire.body(CONVERSATION, at_openai)


@pytest.mark.parametrize(
    ("provider", "model", "off", "high"),
    [
        ("openai", "gpt-5.2", {"reasoning_effort": "none"}, {"reasoning_effort": "high"}),
        ("openai", "gpt-5-mini", {"reasoning_effort": "minimal"}, {"reasoning_effort": "high"}),
        ("openai", "o4-mini", {"reasoning_effort": "low"}, {"reasoning_effort": "high"}),
        ("groq", "openai/gpt-oss-20b", {"reasoning_effort": "low"}, {"reasoning_effort": "high"}),
        ("gemini", "gemini/gemini-3-flash", {"reasoning_effort": "none"}, {"reasoning_effort": "high"}),
        ("ollama", "qwen3", {"reasoning_effort": "none"}, {"reasoning_effort": "high"}),
        ("openrouter", "z-ai/glm-5", {"reasoning": {"effort": "none"}}, {"reasoning": {"effort": "high"}}),
        (
            "deepseek",
            "deepseek-v4-pro",
            {"thinking": {"type": "disabled"}},
            {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        ),
        ("mistral", "mistral-small-latest", {"reasoning_effort": "none"}, {"reasoning_effort": "high"}),
        (
            "llamacpp",
            "qwen3",
            {"chat_template_kwargs": {"enable_thinking": False}},
            {"chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": "high"},
        ),
    ],
)
def test_each_provider_gets_the_amount_of_reasoning_in_its_own_form(
    provider: str, model: str, off: dict[str, object], high: dict[str, object]
) -> None:
    endpoint = replace(ENDPOINT, provider=provider, model=model)
    plain = openai_wire.body(CONVERSATION, endpoint)
    assert openai_wire.body(replace(CONVERSATION, reasoning="off"), endpoint) == plain | off
    assert openai_wire.body(replace(CONVERSATION, reasoning="high"), endpoint) == plain | high


def test_a_key_is_sent_as_a_bearer_token() -> None:
    assert openai_wire.headers(ENDPOINT) == {"Authorization": "Bearer k"}
    assert openai_wire.headers(replace(ENDPOINT, key="")) == {}


def test_a_base_url_with_the_full_path_is_unchanged() -> None:
    assert openai_wire.url(ENDPOINT) == "https://x/v1/chat/completions"
    assert openai_wire.url(replace(ENDPOINT, base_url="https://x/chat/completions")) == "https://x/chat/completions"


def test_images_are_data_urls_and_those_of_tools_follow_the_results_of_their_turn() -> None:
    shot = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUE="}}
    plot = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,QkI="}}
    call = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    assert openai_wire.body(WITH_IMAGES, ENDPOINT)["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "what is it?"}, shot]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", **call}, {"id": "c2", **call}]},
        {"role": "tool", "content": "image/jpeg 4x3", "tool_call_id": "c1"},
        {"role": "tool", "content": "text", "tool_call_id": "c2"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "The images of the tool results above, in their order:"}, plot],
        },
        {"role": "user", "content": "go on"},
    ]


def test_images_of_the_last_results_end_the_request() -> None:
    request = replace(WITH_IMAGES, messages=WITH_IMAGES.messages[:4])
    messages = openai_wire.body(request, ENDPOINT)["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "user"]
