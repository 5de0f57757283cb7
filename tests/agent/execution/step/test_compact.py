"""Fitting long conversations into small context windows."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.execution.step.compact import ContextCompactor, ContextSize, size_of
from agent.execution.step.context import Conversation
from agent.model.faults import ModelFault
from agent.model.port import ModelRequest
from agent.protocol.events import ContextCompacted
from agent.vocabulary.compaction import SUMMARY_PREFIX
from agent.vocabulary.errors import InputError
from agent.vocabulary.message import Message, ToolCall
from tests.agent.execution.step_harness import (
    ScriptedTurn,
    StepHarness,
    call_reply,
    command_result,
    return_in_turn,
    text_reply,
)
from tooling.contract.image import Image

SHOT = Image(sha256="0" * 64, media_type="image/png", width=40, height=30, size=100, name="shot.png")


def tool_turns(turns: int, size: int) -> list[Message]:
    messages: list[Message] = []
    for turn in range(turns):
        messages.append(Message(role="assistant", tool_calls=(ToolCall(id=f"c{turn}", name="x"),)))
        messages.append(Message(role="tool", content="r" * size, tool_call_id=f"c{turn}"))
    return messages


class Compacting:
    """Fits conversations into a window with a scripted model, and keeps the events."""

    def __init__(self, messages: list[Message], *summaries: str | ModelFault) -> None:
        self._summaries = list(summaries)
        self.conversation = Conversation(messages=list(messages))

    async def fit(self, tokens: int) -> list[Message]:
        harness = StepHarness()
        harness.client.summaries = self._summaries
        opening = ModelRequest(model="m", messages=(Message(role="system", content="s"),))
        before = list(self.conversation.messages)
        compactor = ContextCompactor(client=harness.metered, channel=harness.channel, effect_of=lambda tool: "read")
        await compactor.fit(self.conversation, opening, ContextSize(limit=tokens, window=tokens), harness.ctx)
        await harness.channel.close()
        async for envelope in harness.subscription:
            if isinstance(envelope.event, ContextCompacted):
                before = envelope.event.compaction.apply(before)
        assert before == self.conversation.messages, "the events do not tell how the conversation was shortened"
        return self.conversation.messages


async def test_a_conversation_that_fits_is_not_changed() -> None:
    messages = tool_turns(3, 100)
    assert await Compacting(messages).fit(5000) == messages


async def test_old_tool_results_are_left_out_first_and_the_newest_stay_complete() -> None:
    messages = tool_turns(10, 3000)
    shorter = await Compacting(messages).fit(5000)
    assert shorter[-4:] == messages[-4:]
    assert len(shorter) == len(messages)
    assert (
        shorter[1].content == "[3,000 characters of x were left out here to save room; make the call again to see them]"
    )


@given(st.integers(1, 40), st.integers(0, 5000), st.integers(200, 20_000))
def test_only_complete_turns_are_summarized(turns: int, size: int, tokens: int) -> None:
    kept = asyncio.run(Compacting(tool_turns(turns, size), *["In short."] * 3).fit(tokens))
    asked = [call.id for message in kept for call in message.tool_calls]
    assert asked == [message.tool_call_id for message in kept if message.role == "tool"]


async def test_compacting_leaves_room_for_many_turns() -> None:
    assert size_of(await Compacting(tool_turns(60, 3000)).fit(20_000)) < 60_000 * 0.7


async def test_earlier_requests_are_summarized_and_the_newest_one_stays() -> None:
    said = [Message(role="user", content="a" * 20_000), Message(role="assistant", content="done")]
    messages = [*said, Message(role="user", content="now this"), *tool_turns(2, 100)]
    shorter = await Compacting(messages, "A was done.").fit(5000)
    assert [message.content for message in shorter[:2]] == [f"{SUMMARY_PREFIX}A was done.", "now this"]
    assert shorter[2:] == messages[3:]


async def test_the_request_survives_when_its_own_turns_are_summarized() -> None:
    turns = [
        Message(role="assistant", content="t" * 2000, tool_calls=(ToolCall(id=f"c{number}", name="x"),))
        if number % 2 == 0
        else Message(role="tool", content="r", tool_call_id=f"c{number - 1}")
        for number in range(30)
    ]
    request = Message(role="user", content="the request")
    shorter = await Compacting([request, *turns], "Much was done.").fit(5000)
    assert [message.content for message in shorter[:2]] == ["the request", f"{SUMMARY_PREFIX}Much was done."]
    assert shorter[-4:] == turns[-4:]


async def test_old_images_are_left_out_and_their_line_says_how_to_see_them_again() -> None:
    messages = tool_turns(6, 14)
    messages[1] = replace(messages[1], images=(SHOT,))
    shorter = await Compacting(messages).fit(1000)
    line = (
        "[14 characters and image shot.png 40x30 of x were left out here to save room; make the call again to see them]"
    )
    assert (shorter[1].content, shorter[1].images, shorter[2:]) == (line, (), messages[2:])


async def test_images_of_earlier_requests_are_summarized_with_them() -> None:
    said = [Message(role="user", content="what is it?", images=(SHOT,)), Message(role="assistant", content="a box")]
    shorter = await Compacting([*said, Message(role="user", content="and now?")], "A box was seen.").fit(1000)
    summary = Message(role="user", content=f"{SUMMARY_PREFIX}A box was seen.")
    assert shorter == [summary, Message(role="user", content="and now?")]


async def test_a_request_that_is_too_long_itself_gets_a_clear_message() -> None:
    with pytest.raises(InputError, match="too long for m: about 10,000 tokens, and it takes 5,000"):
        await Compacting([Message(role="user", content="x" * 30_000)]).fit(5000)


def long_work(turns: int, *lines: ScriptedTurn) -> StepHarness:
    """A step whose arguments fill the context window every few turns; every call is different."""
    asked = [call_reply("write", text=str(turn) * 900) for turn in range(turns)]
    results = return_in_turn(*[command_result(0, f"result {turn}") for turn in range(turns)])
    return StepHarness(*asked, text_reply("done"), *lines, functions={"write": ("write", results)}, context_tokens=4000)


async def test_turns_that_no_longer_fit_are_summarized_by_the_model() -> None:
    harness = long_work(30)
    harness.client.summaries = ["The numbers were written."]
    response = await harness.run()
    assert response.status == "ok"
    asked = [request for request in harness.client.requests if request.purpose == "summary"]
    assert "write" in asked[0].messages[1].content
    assert (asked[0].tools, asked[0].step_id) == ((), "s1")
    after = [request for request in harness.client.requests if request.purpose == "step"][-1]
    assert any("The numbers were written." in message.content for message in after.messages)
    assert all(size_of(request.messages) <= 4000 * 3 for request in harness.client.requests)
    assert response.usage.requests == response.turns + 1


async def test_old_turns_are_dropped_if_their_summary_fails() -> None:
    harness = long_work(30)
    harness.client.summaries = [ModelFault("server")]
    response = await harness.run()
    assert response.status == "ok"
    notes = [message.content for message in harness.client.requests[-1].messages if message.role == "user"]
    assert any("left out here to save room" in note for note in notes)


async def test_messages_are_only_appended_between_two_trims() -> None:
    harness = long_work(40)
    harness.client.summaries = ["In short."] * 40
    await harness.run()
    steps = [request for request in harness.client.requests if request.purpose == "step"]
    kept = [after.messages[: len(before.messages)] == before.messages for before, after in pairwise(steps)]
    assert kept.count(False) < len(kept) / 3
    assert len({request.messages[:2] for request in steps}) == 1
    assert all(request.tools == steps[0].tools for request in steps)


async def test_a_conversation_rejected_as_too_long_is_shortened() -> None:
    conversation = Conversation(messages=tool_turns(20, 2000))
    harness = StepHarness(ModelFault("overflow"), ModelFault("overflow"), text_reply("done"))
    await harness.run_loop(conversation)
    sizes = [size_of(request.messages) for request in harness.client.requests if request.purpose == "step"]
    assert sizes[0] > 2 * sizes[1] * 0.9 > 2 * sizes[2] * 0.9
