"""Long conversations in small windows."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent.execution.step.context import TURNS_BETWEEN, Conversation, overdue, shorten, size_of
from agent.model.faults import ModelFault
from agent.vocabulary.message import Message, ToolCall
from tests.agent.execution.step_harness import Line, Workshop, calls, ends, exits, says


def conversation(turns: int, size: int) -> list[Message]:
    said: list[Message] = []
    for turn in range(turns):
        said.append(Message(role="assistant", tool_calls=(ToolCall(id=f"c{turn}", name="x"),)))
        said.append(Message(role="tool", content="r" * size, tool_call_id=f"c{turn}"))
    return said


def test_a_conversation_that_fits_is_left_alone() -> None:
    messages = conversation(3, 100)
    assert (shorten(messages, 10_000), overdue(messages, 10_000)) == (messages, 0)


def test_old_tool_results_are_shortened_first_and_the_newest_stay_whole() -> None:
    messages = conversation(10, 3000)
    shorter = shorten(messages, 15_000)
    assert shorter[-4:] == messages[-4:]
    assert (len(shorter), overdue(shorter, 15_000)) == (len(messages), 0)
    assert "characters left out" in shorter[1].content


@given(st.integers(1, 40), st.integers(0, 5000), st.integers(0, 60_000))
def test_what_leaves_are_whole_turns(turns: int, size: int, room: int) -> None:
    messages = shorten(conversation(turns, size), room)
    kept = messages[overdue(messages, room) :]
    asked = [call.id for message in kept for call in message.tool_calls]
    assert asked == [message.tool_call_id for message in kept if message.role == "tool"]
    assert kept[0].role == "assistant"


def test_after_shrinking_there_is_room_for_many_turns() -> None:
    assert size_of(shorten(conversation(60, 3000), 60_000)) < 60_000 * 0.7
    texts = [Message(role="assistant", content="t" * 1000) for _ in range(100)]
    assert size_of(texts[overdue(texts, 60_000) :]) < 60_000 * 0.7


def test_the_newest_turn_stays_however_little_room_there_is() -> None:
    asked = tuple(ToolCall(id=f"c{number}", name="x") for number in range(6))
    results = [Message(role="tool", content="result", tool_call_id=call.id) for call in asked]
    newest = [Message(role="assistant", tool_calls=asked), *results]
    assert (shorten(newest, -100), overdue(newest, -100)) == (newest, 0)


def long_work(turns: int, *lines: Line) -> Workshop:
    """A step whose arguments alone fill its window every few turns; it says something new each time."""
    asked = [calls("write", text=str(turn) * 900) for turn in range(turns)]
    results = ends(*[exits(0, f"result {turn}") for turn in range(turns)])
    return Workshop(*asked, says("done"), *lines, deeds={"write": ("write", results)}, context_tokens=4000)


async def test_turns_that_no_longer_fit_are_summed_up_by_the_model() -> None:
    shop = long_work(30)
    shop.speaker.summaries = ["The numbers were written."]
    response = await shop.run()
    assert response.status == "ok"
    asked = [request for request in shop.speaker.asked if request.purpose == "summary"]
    assert "write" in asked[0].messages[1].content
    assert (asked[0].tools, asked[0].step_id) == ((), "s1")
    after = [request for request in shop.speaker.asked if request.purpose == "step"][-1]
    assert any("The numbers were written." in message.content for message in after.messages)
    assert all(size_of(request.messages) <= 4000 * 3 for request in shop.speaker.asked)
    assert response.usage.requests == response.turns + 1


async def test_summaries_never_become_a_spiral() -> None:
    shop = long_work(60)
    shop.speaker.summaries = ["In short."] * 60
    await shop.run()
    purposes = [request.purpose for request in shop.speaker.asked]
    places = [index for index, purpose in enumerate(purposes) if purpose == "summary"]
    assert places
    for before, after in pairwise(places):
        assert after - before > TURNS_BETWEEN


async def test_a_summary_that_fails_leaves_the_old_turns_out() -> None:
    shop = long_work(30)
    shop.speaker.summaries = [ModelFault("server")]
    response = await shop.run()
    assert response.status == "ok"
    notes = [message.content for message in shop.speaker.asked[-1].messages if message.role == "user"]
    assert any("left out here to save room" in note for note in notes)


async def test_between_two_fittings_messages_are_only_appended() -> None:
    shop = long_work(40)
    shop.speaker.summaries = ["In short."] * 40
    await shop.run()
    steps = [request for request in shop.speaker.asked if request.purpose == "step"]
    kept = [after.messages[: len(before.messages)] == before.messages for before, after in pairwise(steps)]
    assert kept.count(False) < len(kept) / 3
    assert len({request.messages[:2] for request in steps}) == 1
    assert all(request.tools == steps[0].tools for request in steps)


async def test_a_conversation_that_the_provider_finds_too_long_is_made_shorter() -> None:
    talk = Conversation(messages=conversation(20, 2000))
    shop = Workshop(ModelFault("overflow"), ModelFault("overflow"), says("done"))
    await shop.work(talk)
    sizes = [size_of(request.messages) for request in shop.speaker.asked if request.purpose == "step"]
    assert sizes[0] > 2 * sizes[1] * 0.9 > 2 * sizes[2] * 0.9
