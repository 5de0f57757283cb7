"""Trimming long conversations to small context windows."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent.execution.step.context import (
    TURNS_BETWEEN_SUMMARIES,
    Conversation,
    messages_to_drop,
    shorten_results,
    size_of,
)
from agent.model.faults import ModelFault
from agent.vocabulary.message import Message, ToolCall
from tests.agent.execution.step_harness import (
    ScriptedTurn,
    StepHarness,
    call_reply,
    command_result,
    return_in_turn,
    text_reply,
)


def tool_turns(turns: int, size: int) -> list[Message]:
    messages: list[Message] = []
    for turn in range(turns):
        messages.append(Message(role="assistant", tool_calls=(ToolCall(id=f"c{turn}", name="x"),)))
        messages.append(Message(role="tool", content="r" * size, tool_call_id=f"c{turn}"))
    return messages


def test_a_conversation_that_fits_is_not_changed() -> None:
    messages = tool_turns(3, 100)
    assert (shorten_results(messages, 10_000), messages_to_drop(messages, 10_000)) == (messages, 0)


def test_old_tool_results_are_shortened_first_and_the_newest_stay_complete() -> None:
    messages = tool_turns(10, 3000)
    shorter = shorten_results(messages, 15_000)
    assert shorter[-4:] == messages[-4:]
    assert (len(shorter), messages_to_drop(shorter, 15_000)) == (len(messages), 0)
    assert "characters left out" in shorter[1].content


@given(st.integers(1, 40), st.integers(0, 5000), st.integers(0, 60_000))
def test_only_complete_turns_are_dropped(turns: int, size: int, room: int) -> None:
    messages = shorten_results(tool_turns(turns, size), room)
    kept = messages[messages_to_drop(messages, room) :]
    asked = [call.id for message in kept for call in message.tool_calls]
    assert asked == [message.tool_call_id for message in kept if message.role == "tool"]
    assert kept[0].role == "assistant"


def test_trimming_leaves_room_for_many_turns() -> None:
    assert size_of(shorten_results(tool_turns(60, 3000), 60_000)) < 60_000 * 0.7
    texts = [Message(role="assistant", content="t" * 1000) for _ in range(100)]
    assert size_of(texts[messages_to_drop(texts, 60_000) :]) < 60_000 * 0.7


def test_the_newest_turn_is_never_dropped() -> None:
    asked = tuple(ToolCall(id=f"c{number}", name="x") for number in range(6))
    results = [Message(role="tool", content="result", tool_call_id=call.id) for call in asked]
    newest = [Message(role="assistant", tool_calls=asked), *results]
    assert (shorten_results(newest, -100), messages_to_drop(newest, -100)) == (newest, 0)


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


async def test_summaries_are_at_least_some_turns_apart() -> None:
    harness = long_work(60)
    harness.client.summaries = ["In short."] * 60
    await harness.run()
    purposes = [request.purpose for request in harness.client.requests]
    positions = [index for index, purpose in enumerate(purposes) if purpose == "summary"]
    assert positions
    for before, after in pairwise(positions):
        assert after - before > TURNS_BETWEEN_SUMMARIES


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
