"""Consecutive requests of a conversation begin alike, byte for byte, so that providers' caches hit."""

import json
import re
from dataclasses import replace

import pytest

from agent.model.port import ModelRequest
from agent.model.providers import Endpoint
from agent.model.wire import anthropic_wire, openai_wire
from agent.model.wire.http_client import WIRES
from agent.vocabulary.message import Message, ToolCall
from tests.provider.client_harness import tool_schema

ENDPOINTS = [
    Endpoint(provider="openai", wire="openai", base_url="https://api.openai.com/v1", key="k", model="gpt-5"),
    Endpoint(provider="deepseek", wire="openai", base_url="https://api.deepseek.com/v1", key="k", model="d"),
    Endpoint(
        provider="anthropic", wire="anthropic", base_url="https://api.anthropic.com/v1", key="k", model="claude-x"
    ),
]
MARK = ',"cache_control":{"type":"ephemeral"}'


def turn(number: int, model: str) -> tuple[Message, ...]:
    """One turn of a model with two calls and their results, every third one followed by an answer and a request."""
    calls = tuple(ToolCall(id=f"c{number}_{i}", name="look", arguments={"at": f"ü {i}"}) for i in range(2))
    asked = Message(
        role="assistant",
        content="I look. ",
        tool_calls=calls,
        reasoning="hm",
        reasoning_signature="c2ln",
        reasoning_model=model,
    )
    results = (Message(role="tool", tool_call_id=call.id, content=f"seen {number}") for call in calls)
    follow_up = (Message(role="assistant", content="Done."), Message(role="user", content="And now?"))
    return (asked, *results, *(follow_up if number % 3 == 2 else ()))


def conversation(endpoint: Endpoint, turns: int) -> ModelRequest:
    model = f"{endpoint.provider}/{endpoint.model}"
    opening = (Message(role="system", content="be brief"), Message(role="user", content="go"))
    return ModelRequest(
        model=model,
        messages=opening + tuple(message for number in range(turns) for message in turn(number, model)),
        tools=(tool_schema("look"), tool_schema("run", {"x": {"type": "integer"}})),
        max_output_tokens=100,
        temperature=0.5,
        cache_key="session-1",
    )


def sent(request: ModelRequest, endpoint: Endpoint) -> str:
    return json.dumps(WIRES[endpoint.wire].body(request, endpoint), ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.provider)
def test_a_request_without_its_closing_brackets_is_the_beginning_of_the_next(endpoint: Endpoint) -> None:
    for turns in range(8):
        before, after = (
            sent(conversation(endpoint, count), endpoint).replace(MARK, "") for count in (turns, turns + 1)
        )
        assert after.startswith(re.sub(r"[\]}]+$", "", before))


def test_the_end_of_a_request_is_marked_in_the_next_one_too() -> None:
    endpoint = ENDPOINTS[-1]
    for turns in range(8):
        before, after = (sent(conversation(endpoint, count), endpoint) for count in (turns, turns + 1))
        assert before.endswith(MARK + "}]}]}")
        assert after.count(MARK) == 4
        last_block = before.removesuffix("]}]}").rpartition('{"type"')[2]
        assert last_block in after


def test_another_model_gets_the_conversation_without_signed_reasoning() -> None:
    request = replace(conversation(ENDPOINTS[-1], 3), model="openai/gpt-5")
    assert "c2ln" not in json.dumps(openai_wire.body(request, ENDPOINTS[0]))
    back = replace(conversation(ENDPOINTS[0], 3), model="anthropic/claude-x")
    assert "c2ln" not in json.dumps(anthropic_wire.body(back, ENDPOINTS[-1]))
