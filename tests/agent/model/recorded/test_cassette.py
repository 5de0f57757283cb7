"""A recorded run can be replayed in another folder and on another day, without network or key."""

import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.model.faults import ModelFault
from agent.model.port import CallDelta, ModelReply, ModelRequest, Purpose, ReasoningDelta, StreamItem, TextDelta
from agent.model.recorded.cassette import NO_OUTCOME
from agent.model.recorded.normal_form import normalize_text
from agent.model.recorded.recording import RecordingClient
from agent.model.recorded.replaying import ReplayingClient
from agent.vocabulary.errors import InputError
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.usage import Usage

TOOLS = ({"type": "function", "function": {"name": "read_file"}}, {"type": "function", "function": {"name": "ls"}})
USAGE = Usage(input_tokens=5, output_tokens=2, requests=1, cost_usd=None)
KEY = "sk-secret-1234"


class CannedModel:
    """A model with prepared replies."""

    def __init__(self, *replies: Message | ModelFault) -> None:
        self._replies = list(replies)
        self.is_closed = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        reply = self._replies.pop(0)
        if isinstance(reply, ModelFault):
            raise reply
        yield TextDelta(text=reply.content)
        yield ModelReply(message=reply, usage=USAGE, model=request.model)

    async def close(self) -> None:
        self.is_closed = True


def make_request(*messages: Message | str, purpose: Purpose = "step", tools: bool = True) -> ModelRequest:
    history = tuple(Message(role="user", content=item) if isinstance(item, str) else item for item in messages)
    return ModelRequest(model="m", messages=history, purpose=purpose, step_id="s1", tools=TOOLS if tools else ())


def answer(text: str, *calls: ToolCall) -> Message:
    return Message(role="assistant", content=text, tool_calls=calls, reasoning="hm")


async def collect(client: RecordingClient | ReplayingClient, request: ModelRequest) -> list[StreamItem]:
    return [item async for item in client.stream(request)]


async def final_message(client: RecordingClient | ReplayingClient, request: ModelRequest) -> Message:
    last = (await collect(client, request))[-1]
    assert isinstance(last, ModelReply)
    return last.message


async def record(path: Path, workspace: str, *pairs: tuple[ModelRequest, Message | ModelFault]) -> None:
    model = CannedModel(*(reply for _, reply in pairs))
    client = RecordingClient(model, path, {workspace: "<workspace>"}, lambda text: text.replace(KEY, "[key]"))
    for request, reply in pairs:
        if isinstance(reply, ModelFault):
            with pytest.raises(ModelFault):
                await collect(client, request)
        else:
            await collect(client, request)
    await client.close()
    assert model.is_closed


async def test_a_run_in_another_folder_and_later_gets_the_same_replies(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    call = ToolCall(id="call_1", name="read_file", arguments={"path": "/home/a/ws/x.txt"})
    result = Message(role="tool", content="mtime 2026-11-16T02:44:10Z, took 1.2 s, pid 77", tool_call_id="call_1")
    ask = "Today is 2026-11-16. Work in /home/a/ws."
    await record(
        path,
        "/home/a/ws",
        (make_request(ask), answer("", call)),
        (make_request(ask, answer("", call), result), answer("done")),
    )

    client = ReplayingClient(path, {"/elsewhere": "<workspace>"})
    ask = "Today is 2027-01-02. Work in /elsewhere."
    first = await collect(client, make_request(ask))
    here = ToolCall(id="call_1", name="read_file", arguments={"path": "/elsewhere/x.txt"})
    assert first == [
        ReasoningDelta(text="hm"),
        CallDelta(index=0, name="read_file", text=""),
        CallDelta(index=0, name="read_file", text='{"path"'),
        CallDelta(index=0, name="read_file", text=': "/els'),
        CallDelta(index=0, name="read_file", text="ewhere/"),
        CallDelta(index=0, name="read_file", text='x.txt"}'),
        ModelReply(message=answer("", here), usage=USAGE, model="m"),
    ]
    result = Message(role="tool", content="mtime 2027-01-02T12:00:00Z, took 800 ms, pid 9", tool_call_id="call_1")
    second = await collect(client, make_request(ask, answer("", here), result))
    assert [item.text for item in second if isinstance(item, TextDelta)] == ["d", "o", "n", "e"]


async def test_identical_requests_get_the_recorded_replies_in_order_and_then_fail(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    await record(path, "", (make_request("go"), answer("one")), (make_request("go"), answer("two")))
    client = ReplayingClient(path, {})
    assert [(await final_message(client, make_request("go"))).content for _ in range(2)] == ["one", "two"]
    with pytest.raises(ModelFault, match=r"to this request \(step, step s1\) were already used"):
        await collect(client, make_request("go"))


async def test_a_fault_is_recorded_and_replayed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    await record(path, "", (make_request("go"), ModelFault("overflow", f"too long for {KEY}")))
    with pytest.raises(ModelFault) as caught:
        await collect(ReplayingClient(path, {}), make_request("go"))
    assert (caught.value.kind, caught.value.detail) == ("overflow", "too long for [key]")


async def test_the_cassette_is_private_and_contains_no_secrets_or_paths(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("old\n")
    path.chmod(0o644)
    call = ToolCall(id="1", name="run", arguments={"env": [KEY], "cwd": "/ws/deep"})
    await record(path, "/ws", (make_request(f"use {KEY} in /ws"), answer(f"I use {KEY}", call)))
    text = path.read_text()
    assert KEY not in text
    assert "/ws" not in text.replace("<workspace>/", "")
    assert "old" not in text
    assert json.loads(text.splitlines()[0]) == {"windlass_cassette": 1}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    client = ReplayingClient(path, {"/ws": "<workspace>"}, lambda text: text.replace(KEY, "[key]"))
    assert (await final_message(client, make_request(f"use {KEY} in /ws"))).tool_calls[0].arguments["cwd"] == "/ws/deep"


async def test_a_run_without_requests_keeps_the_older_cassette(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("old")
    await RecordingClient(CannedModel(), path, {}).close()
    assert path.read_text() == "old"


async def test_an_exchange_is_written_before_its_reply_is_yielded(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    client = RecordingClient(CannedModel(answer("one")), path, {})
    async for item in client.stream(make_request("go")):
        assert ("one" in path.read_text()) == isinstance(item, ModelReply)
    await client.close()
    await client.close()


async def test_a_miss_shows_the_nearest_recorded_request(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    far, near = make_request("write a poem about the sea"), make_request("intro", "count the files\nin src\nplease")
    plan = make_request("count the files", purpose="planner")
    await record(path, "", (far, answer("1")), (near, answer("2")), (plan, answer("3")))
    client = ReplayingClient(path, {})
    with pytest.raises(ModelFault) as caught:
        await collect(client, make_request("intro", "count the files\nin tests\nplease"))
    assert caught.value.kind == "script"
    assert caught.value.detail == (
        f"no request in {path} matches this one (step, step s1); nearest recorded request differs in message 2:\n"
        "--- recorded\n+++ asked\n@@ -1,3 +1,3 @@\n user: count the files\n-in src\n+in tests\n please"
    )
    with pytest.raises(ModelFault, match="no recorded request has this purpose"):
        await collect(client, make_request("x", purpose="memory"))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is not a cassette"),
        ('{"text": "x"}\n', "is not a cassette"),
        ('{"windlass_cassette": 99}\n', "has cassette format 99"),
        ('{"windlass_cassette": 1}\n{"request"', "line 2: Expecting"),
        ('{"windlass_cassette": 1}\n\n{"request": {"purpose": "step"}}', "line 3: missing field request.messages"),
        ('{"windlass_cassette": 1}\n{"request": {"purpose": "step", "messages": []}}', NO_OUTCOME),
    ],
)
def test_a_broken_cassette_is_an_input_error(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=problem):
        ReplayingClient(path, {})


def test_an_unusable_path_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        ReplayingClient(tmp_path / "nowhere", {})
    with pytest.raises(InputError, match="cannot write"):
        RecordingClient(CannedModel(), tmp_path / "nowhere" / "x", {})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at 2026-11-16T02:44:10.123Z", "at 2027-01-01T10:00:00.1Z"),
        ("at 2026-11-16 02:44", "at 2027-01-01 10:59"),
        ("Monday, 16 November 2026", "Friday, 1 January 2027"),
        ("-rw- 3 Nov 16 02:44 a.txt", "-rw- 3 Dec 1 12:00 a.txt"),
        ("took 0.53s", "took 12s"),
        ("done in 3 ms", "done in 1.5 seconds"),
        ("pid 123", "pid 4567"),
        ("id 7c9e6679-7425-40de-944b-e07fc1f90ae7", "id 00000000-0000-0000-0000-000000000000"),
        ("see outputs/call_ab12.txt", "see outputs/call_99ff.txt"),
        ("in /tmp/tmpab12cd34/x", "in /tmp/tmpzzzzzzzz/x"),
        ("<obj at 0x7f1234567890>", "<obj at 0x7fabcdefabcd>"),
    ],
)
def test_texts_that_differ_between_runs_are_normalized(one: str, other: str) -> None:
    assert normalize_text(one) == normalize_text(other)


@pytest.mark.parametrize(
    "text", ["5 steps to go", "write a.txt", "version 1.2.3", "exit code 3", "10 files, 2048 bytes"]
)
def test_other_text_is_not_normalized(text: str) -> None:
    assert normalize_text(text) == text


async def test_a_cassette_still_matches_after_a_tool_was_added(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    await record(path, "", (make_request("count the files"), answer("2")))
    items = await collect(ReplayingClient(path, {}), make_request("count the files", tools=False))
    assert isinstance(items[-1], ModelReply) and items[-1].message == answer("2")
