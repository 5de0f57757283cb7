"""Ctrl-C at every moment of a step leaves a conversation that every provider accepts, and a stream without holes."""

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


def lines() -> tuple[ScriptedTurn, ...]:
    """A step with calls alone, side by side, in order, and with text before them."""
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
    """Each call is answered once, right after the message that made it, before anybody else speaks."""
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
    """Turns alternate from the user on, none is empty, and each tool_use is answered in the very next turn."""
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


async def cancelled_after(moments: int, talk: Conversation) -> bool:
    """Work on a conversation and cancel after some turns of the event loop; say whether it was still at work."""
    shop = StepHarness(*lines())
    working = asyncio.ensure_future(shop.run_loop(talk))
    for _ in range(moments):
        await asyncio.sleep(0)
    was_working = working.cancel()
    await asyncio.wait({working})
    await shop.channel.close()
    return was_working and working.cancelled()


async def test_a_conversation_is_valid_for_both_wire_forms_whenever_it_is_cut() -> None:
    moments = 0
    while True:
        talk = Conversation()
        was_cut = await cancelled_after(moments, talk)
        assert problems_of(talk.messages) == [], moments
        shop = StepHarness(text_reply("gone on"))
        await shop.run_loop(talk)
        assert problems_of(shop.client.requests[0].messages[2:] if shop.client.requests else ()) == [], moments
        if not was_cut:
            break
        moments += 1
    assert moments > 40


async def test_the_stream_has_no_holes_and_tells_the_conversation_again_whenever_it_is_cut() -> None:
    moments = 0
    while True:
        shop = StepHarness(*lines(), text_reply("mended"))
        running = asyncio.ensure_future(shop.run(CHECKED))
        for _ in range(moments):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait({running})
        envelopes = await shop.envelopes()
        events = [to_json(envelope) for envelope in envelopes]
        assert [*_steps(events), *_pairs(events)] == [], moments
        begun = unfinished_task(envelopes, shop.calls.effect_of)
        assert begun is None or problems_of(begun.messages) == [], moments
        if not running.cancelled():
            break
        told = [event["status"] for event in events if event["type"] == "step.completed"]
        assert told == [noted.status for noted in shop.recorded], moments
        ended = sum(event["type"] == "tool.completed" for event in events)
        assert ended == sum(len(noted.tool_calls) for noted in shop.recorded), moments
        moments += 1
    assert moments > 60
    assert running.result().verified


@pytest.mark.parametrize("moments", range(0, 60, 7))
async def test_a_second_interruption_leaves_no_hole_either(moments: int) -> None:
    shop = StepHarness(*lines())
    running = asyncio.ensure_future(shop.run())
    for pause in (moments, 1, 1, 1):
        for _ in range(pause):
            await asyncio.sleep(0)
        running.cancel()
    await asyncio.wait({running})
    events = [to_json(envelope) for envelope in await shop.envelopes()]
    assert [*_steps(events), *_pairs(events)] == []
