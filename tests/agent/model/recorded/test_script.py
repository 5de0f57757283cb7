"""The scripted model replies with its lines and reports what is missing."""

import asyncio
import json
from pathlib import Path

import pytest

from agent.model.faults import ModelFault
from agent.model.port import CallDelta, ModelReply, ModelRequest, Purpose, ReasoningDelta, StreamItem, TextDelta
from agent.model.recorded.script import EMPTY_REPLY, NO_LINES_LEFT, ScriptedModel
from agent.vocabulary.errors import InputError
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.usage import Usage


def script(folder: Path, *lines: object) -> ScriptedModel:
    path = folder / "script.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return ScriptedModel(path)


def make_request(text: str = "go", *, purpose: Purpose = "step", step: str | None = None) -> ModelRequest:
    message = Message(role="user", content=text)
    return ModelRequest(model="script:x", messages=(message,), purpose=purpose, step_id=step)


async def collect(model: ScriptedModel, request: ModelRequest) -> list[StreamItem]:
    return [item async for item in model.stream(request)]


async def reply(model: ScriptedModel, request: ModelRequest) -> ModelReply:
    last = (await collect(model, request))[-1]
    assert isinstance(last, ModelReply)
    return last


async def reply_text(model: ScriptedModel, request: ModelRequest) -> str:
    return (await reply(model, request)).message.content


async def test_lines_without_a_match_are_used_in_order(tmp_path: Path) -> None:
    model = script(tmp_path, "# a comment", {"text": "one"}, "", {"text": "two"})
    assert [await reply_text(model, make_request()), await reply_text(model, make_request())] == ["one", "two"]


async def test_the_text_arrives_in_fragments_followed_by_the_reply(tmp_path: Path) -> None:
    usage = {"input_tokens": 7, "output_tokens": 2, "cost_usd": 0.5}
    model = script(tmp_path, {"text": "abcdef", "reasoning": "hm", "chunks": 2, "usage": usage})
    assert await collect(model, make_request()) == [
        ReasoningDelta(text="h"),
        ReasoningDelta(text="m"),
        TextDelta(text="abc"),
        TextDelta(text="def"),
        ModelReply(
            message=Message(role="assistant", content="abcdef", reasoning="hm"),
            usage=Usage(input_tokens=7, output_tokens=2, requests=1, cost_usd=0.5),
            model="script:x",
        ),
    ]


async def test_calls_arrive_in_fragments_after_the_text(tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "so", "chunks": 2, "tool_calls": [{"name": "a", "arguments": {"x": 1}}]})
    assert (await collect(model, make_request()))[:-1] == [
        TextDelta(text="s"),
        TextDelta(text="o"),
        CallDelta(index=0, name="a", text=""),
        CallDelta(index=0, name="a", text='{"x"'),
        CallDelta(index=0, name="a", text=": 1}"),
    ]


async def test_lines_with_a_match_are_preferred(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        {"text": "any"},
        {"text": "for b", "match": {"step": "b"}},
        {"text": "for a", "match": {"step": "a", "purpose": "step"}},
        {"text": "composed", "match": {"purpose": "composer"}},
        {"text": "about foxes", "match": {"contains": "fox(es)?"}},
        {"text": "about braces", "match": {"contains": "f(("}},
    )
    assert await reply_text(model, make_request(step="a")) == "for a"
    assert await reply_text(model, make_request(step="b")) == "for b"
    assert await reply_text(model, make_request(purpose="composer")) == "composed"
    assert await reply_text(model, make_request("two foxes")) == "about foxes"
    assert await reply_text(model, make_request("f((x))")) == "about braces"
    assert await reply_text(model, make_request(step="a")) == "any"


async def test_a_repeated_line_is_used_again(tmp_path: Path) -> None:
    model = script(tmp_path, {"tool_calls": [{"name": "ls"}], "repeat": True})
    first, second = (await reply(model, make_request())).message, (await reply(model, make_request())).message
    assert first.tool_calls[0].id != second.tool_calls[0].id


async def test_tool_calls_have_arguments_or_a_problem(tmp_path: Path) -> None:
    calls = [{"name": "a", "arguments": {"x": 1}, "id": "c1"}, {"name": "b", "arguments": "{'y': 2}"}]
    model = script(tmp_path, {"tool_calls": [*calls, {"name": "c", "arguments": '{"z": "ha'}]})
    result = await reply(model, make_request())
    assert result.finish_reason == "tool_calls"
    assert result.message.tool_calls[0] == ToolCall(id="c1", name="a", arguments={"x": 1})
    assert result.message.tool_calls[1].arguments == {"y": 2}
    assert "inside a string" in (result.message.tool_calls[2].problem or "")


async def test_a_fault_is_raised_after_the_text(tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "half", "chunks": 1, "fault": "rate_limit", "retry_after_s": 2})
    fragments: list[StreamItem] = []
    with pytest.raises(ModelFault) as caught:
        async for item in model.stream(make_request()):
            fragments.append(item)
    assert fragments == [TextDelta(text="half")]
    assert (caught.value.kind, caught.value.retry_after_s) == ("rate_limit", 2)


async def test_a_delay_can_be_cancelled(tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "late", "delay_ms": 60_000})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await collect(model, make_request())


async def test_a_request_without_a_line_is_reported_with_the_unused_lines(tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "x", "match": {"purpose": "planner"}}, {"text": "y"})
    await collect(model, make_request())
    with pytest.raises(ModelFault) as caught:
        await collect(model, make_request("where\nis it?", step="s1"))
    assert caught.value.kind == "script"
    assert caught.value.detail == (
        f"request 2 (step, step s1, last message 'where is it?') matches no line in {tmp_path}/script.jsonl; "
        "unused lines: line 1 for purpose planner"
    )
    await collect(model, make_request(purpose="planner"))
    with pytest.raises(ModelFault, match=NO_LINES_LEFT):
        await collect(model, make_request())


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "line 2: Expecting property name"),
        ('{"txt": "x"}', "line 2: unknown field txt, did you mean text?"),
        ('{"text": 1}', "line 2: text: expected text, got number 1"),
        ('{"text": "x", "match": {"purpose": "cook"}}', "line 2: match.purpose: expected one of planner, lead, step"),
        ('{"fault": "bad"}', "line 2: fault: expected one of connect"),
        ('{"repeat": true}', f"line 2: {EMPTY_REPLY}"),
        ("[]", "line 2: ScriptReply: expected an object, got list"),
    ],
)
def test_an_invalid_line_is_reported_with_its_number(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        script(tmp_path, "# first", line)
    assert f"{tmp_path}/script.jsonl, {problem}" in caught.value.message


def test_a_missing_script_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the script"):
        ScriptedModel(tmp_path / "nowhere.jsonl")


async def test_the_shipped_example_replies_to_every_request() -> None:
    model = ScriptedModel(Path(__file__).parents[4] / "examples" / "hello.jsonl")
    for _ in range(2):
        assert await reply_text(model, make_request(purpose="lead")) == "Hello from Windlass."
