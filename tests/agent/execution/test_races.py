"""Cancelling a step at any moment leaves a conversation that every provider accepts, and a complete event stream."""

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from agent.execution.step.context import Conversation
from agent.model.port import ModelRequest
from agent.model.providers import Endpoint
from agent.model.wire import anthropic_wire, openai_wire
from agent.protocol.codec import to_json
from agent.sessions.resume.step_history import unfinished_task
from agent.vocabulary.message import Message
from agent.vocabulary.plan import PlanStep
from tests.agent.execution.step_harness import ScriptedTurn, StepHarness, call_reply, text_reply
from tests.docs.grammar import _pairs, _steps

CHECKED = PlanStep(id="s1", title="One", instruction="Do it", verify="make test")
OPENING = (Message(role="system", content="You work."), Message(role="user", content="Do it"))


def replies() -> tuple[ScriptedTurn, ...]:
    """A step with single, parallel and sequential calls."""
    worked = [
        (call_reply("look", "look", n=n), call_reply("write", "run_command", "write", n=n), call_reply("write", n=-n))
        for n in (1, 2, 3)
    ]
    return (*itertools.chain(*worked), text_reply(""), text_reply("done"))


def problems_of(messages: Sequence[Message]) -> list[str]:
    request = ModelRequest(model="m", messages=(*OPENING, *messages))
    return [*openai_problems(request), *anthropic_problems(request)]


def endpoint(provider: str) -> Endpoint:
    return Endpoint(provider=provider, model="m", base_url="http://localhost", key="", wire="openai")  # type: ignore[call-arg]


def openai_problems(request: ModelRequest) -> list[str]:
    """Each call is answered once, right after its message and before any other message."""
    found: list[str] = []
    waiting: Counter[str] = Counter()
    body = json.loads(json.dumps(openai_wire.body(request, endpoint("openai"))))
    for message in body["messages"]:
        if message["role"] == "tool":
            if not waiting[message["tool_call_id"]]:
                found.append(f"result without a call: {message}")
            waiting[message["tool_call_id"]] -= 1
            continue
        found += [f"{message['role']} speaks before {name} was answered" for name in +waiting]
        waiting = Counter(call["id"] for call in message.get("tool_calls") or ())
    return [*found, *(f"{name} was never answered" for name in +waiting)]


def anthropic_problems(request: ModelRequest) -> list[str]:
    """Turns alternate starting with the user, none is empty, and each tool_use is answered in the next turn."""
    found: list[str] = []
    body = json.loads(json.dumps(anthropic_wire.body(request, endpoint("anthropic"))))
    turns: list[Mapping[str, list[Mapping[str, str]]]] = body["messages"]
    roles = [str(turn["role"]) for turn in turns]
    if roles != [("user", "assistant")[at % 2] for at in range(len(roles))]:
        found.append(f"turns do not alternate: {roles}")
    asked: Counter[str] = Counter()
    for turn in turns:
        blocks = turn["content"]
        answered = Counter(block["tool_use_id"] for block in blocks if block["type"] == "tool_result")
        if answered != asked:
            found.append(f"{dict(asked)} were answered by {dict(answered)}")
        asked = Counter(block["id"] for block in blocks if block["type"] == "tool_use")
        found += ["an empty turn"] if not blocks else []
    return [*found, *(f"{name} was never answered" for name in asked)]


async def cancelled_after(moments: int, conversation: Conversation) -> bool:
    """Run a conversation and cancel it after some iterations of the event loop; return whether it was running."""
    harness = StepHarness(*replies())
    task = asyncio.ensure_future(harness.run_loop(conversation))
    for _ in range(moments):
        await asyncio.sleep(0)
    was_working = task.cancel()
    await asyncio.wait({task})
    await harness.channel.close()
    return was_working and task.cancelled()


async def test_a_conversation_is_valid_for_both_wire_formats_whenever_it_is_cancelled() -> None:
    moments = 0
    while True:
        conversation = Conversation()
        was_cut = await cancelled_after(moments, conversation)
        assert problems_of(conversation.messages) == [], moments
        harness = StepHarness(text_reply("gone on"))
        await harness.run_loop(conversation)
        assert problems_of(harness.client.requests[0].messages[2:] if harness.client.requests else ()) == [], moments
        if not was_cut:
            break
        moments += 1
    assert moments > 40


async def test_the_events_are_complete_and_restore_the_conversation_whenever_it_is_cancelled() -> None:
    moments = 0
    while True:
        harness = StepHarness(*replies(), text_reply("mended"))
        running = asyncio.ensure_future(harness.run(CHECKED))
        for _ in range(moments):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait({running})
        envelopes = await harness.envelopes()
        events = [to_json(envelope) for envelope in envelopes]
        assert [*_steps(events), *_pairs(events)] == [], moments
        unfinished = unfinished_task(envelopes, harness.calls.effect_of)
        assert unfinished is None or problems_of(unfinished.messages) == [], moments
        if not running.cancelled():
            break
        reported = [event["status"] for event in events if event["type"] == "step.completed"]
        assert reported == [recorded.status for recorded in harness.recorded], moments
        ended = sum(event["type"] == "tool.completed" for event in events)
        assert ended == sum(len(recorded.tool_calls) for recorded in harness.recorded), moments
        moments += 1
    assert moments > 60
    assert running.result().verified


@pytest.mark.parametrize("moments", range(0, 60, 7))
async def test_the_events_are_complete_after_repeated_cancellation(moments: int) -> None:
    harness = StepHarness(*replies())
    running = asyncio.ensure_future(harness.run())
    for pause in (moments, 1, 1, 1):
        for _ in range(pause):
            await asyncio.sleep(0)
        running.cancel()
    await asyncio.wait({running})
    events = [to_json(envelope) for envelope in await harness.envelopes()]
    assert [*_steps(events), *_pairs(events)] == []
