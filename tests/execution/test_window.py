"""Long conversations in small windows."""

from hypothesis import given
from hypothesis import strategies as st

from agent.execution.window import CHARS_PER_TOKEN, fit
from agent.vocabulary.message import Message, ToolCall


def conversation(turns: int, size: int) -> list[Message]:
    opening = [Message(role="system", content="rules"), Message(role="user", content="the task")]
    for turn in range(turns):
        opening.append(Message(role="assistant", tool_calls=(ToolCall(id=f"c{turn}", name="x"),)))
        opening.append(Message(role="tool", content="r" * size, tool_call_id=f"c{turn}"))
    return opening


def test_a_conversation_that_fits_is_left_alone() -> None:
    messages = conversation(3, 100)
    assert fit(messages, 10_000) == messages


def test_old_tool_results_are_shortened_first_and_the_newest_stay_whole() -> None:
    messages = conversation(10, 3000)
    fitted = fit(messages, 5_000)
    assert fitted[:2] == messages[:2]
    assert fitted[-4:] == messages[-4:]
    assert len(fitted) == len(messages)
    assert "characters left out" in fitted[3].content


@given(st.integers(1, 40), st.integers(0, 5000), st.integers(200, 20_000))
def test_every_result_keeps_its_call_and_every_call_its_result(turns: int, size: int, limit: int) -> None:
    fitted = fit(conversation(turns, size), limit)
    calls = {call.id for message in fitted for call in message.tool_calls}
    assert calls == {message.tool_call_id for message in fitted if message.role == "tool"}
    assert [message.content for message in fitted[:2]] == ["rules", "the task"]


def test_after_shrinking_there_is_room_for_many_turns() -> None:
    fitted = fit(conversation(60, 3000), 20_000)
    assert sum(len(message.content) for message in fitted) < 20_000 * CHARS_PER_TOKEN * 0.7


def test_the_newest_turn_stays_however_little_room_there_is() -> None:
    calls = tuple(ToolCall(id=f"c{number}", name="x") for number in range(6))
    opening = [Message(role="system", content="rules"), Message(role="user", content="long " * 10_000)]
    results = [Message(role="tool", content="result", tool_call_id=call.id) for call in calls]
    newest = [Message(role="assistant", tool_calls=calls), *results]
    assert fit([*opening, *newest], 1_000) == [*opening, *newest]
