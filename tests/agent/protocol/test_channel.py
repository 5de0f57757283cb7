"""What is published, kept and heard."""

import asyncio
import errno
from pathlib import Path

import pytest

from agent.protocol.channel import DELTA_BACKLOG, Channel, LogWriteError
from agent.protocol.events import ApprovalRequested, CallMade, ErrorRaised, MessageSaid, RunStarted, WarningRaised
from agent.sessions.log.event_log import FileLog, last_seq, read_events
from tooling.safety.secrets.redact import Redactor


class SlowLog:
    """Counts appends and is busy long enough for others to queue up."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def append(self, lines: bytes) -> None:
        import time

        time.sleep(0.01)
        self.batches.append(lines.count(b"\n"))


class FullDisk:
    def append(self, lines: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def channel(log: object = None, **more: object) -> Channel:
    return Channel(session_id="s", run_id="r", log=log, **more)  # type: ignore[arg-type]


async def collect(subscription: object) -> list[object]:
    return [envelope async for envelope in subscription]  # type: ignore[attr-defined]


async def test_events_are_numbered_in_the_order_they_were_published(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    out = channel(FileLog(path), first_seq=7)
    ear = out.subscribe()
    await asyncio.gather(*(out.publish(WarningRaised(message=str(n))) for n in range(20)))
    await out.close()
    assert [envelope.seq for envelope in await collect(ear)] == list(range(7, 27))
    assert [envelope.seq for envelope in read_events(path)] == list(range(7, 27))
    assert last_seq(path) == 26


async def test_a_lasting_event_is_on_disk_before_anyone_hears_it(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    out = channel(FileLog(path))
    ear = out.subscribe()

    async def check() -> None:
        async for envelope in ear:
            assert any(kept.seq == envelope.seq for kept in read_events(path))

    checking = asyncio.ensure_future(check())
    for number in range(10):
        await out.publish(WarningRaised(message=str(number)))
    await out.close()
    await checking


async def test_events_that_arrive_while_the_disk_is_busy_share_one_write() -> None:
    log = SlowLog()
    out = channel(log)
    await asyncio.gather(*(out.publish(WarningRaised(message=str(n))) for n in range(50)))
    await out.close()
    assert sum(log.batches) == 50
    assert len(log.batches) <= 3


async def test_a_slow_listener_loses_fragments_but_never_lasting_events() -> None:
    out = channel()
    ear = out.subscribe()
    for number in range(DELTA_BACKLOG * 2):
        out.emit(MessageSaid(role="assistant", content=str(number), delta=True))
    for number in range(100):
        await out.publish(WarningRaised(message=str(number)))
    await out.close()
    events = [envelope.event for envelope in await collect(ear)]
    assert sum(isinstance(event, MessageSaid) for event in events) == DELTA_BACKLOG
    assert sum(isinstance(event, WarningRaised) for event in events) == 100


async def test_fragments_are_not_kept_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    out = channel(FileLog(path))
    out.emit(MessageSaid(role="assistant", content="frag", delta=True))
    await out.publish(WarningRaised(message="kept"))
    await out.close()
    assert [envelope.event for envelope in read_events(path)] == [WarningRaised(message="kept")]


async def test_a_full_disk_stops_the_publisher_but_beginning_and_ending_are_still_heard() -> None:
    out = channel(FullDisk())
    ear = out.subscribe()
    began = RunStarted(model="", planner_model="", cwd="", workspace="", backend="", approval_mode="", tools=())
    out.emit(began)
    with pytest.raises(LogWriteError, match="No space left"):
        await out.publish(WarningRaised(message="lost"))
    await out.publish(ErrorRaised(message="the end"))
    await out.close()
    assert [envelope.event for envelope in await collect(ear)] == [began, ErrorRaised(message="the end")]


async def test_a_known_key_never_reaches_a_listener_or_the_log(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    out = channel(FileLog(path), redactor=Redactor(("sk-SENTINEL",)))
    ear = out.subscribe()
    await out.publish(WarningRaised(message="the key is sk-SENTINEL."))
    await out.close()
    assert [envelope.event for envelope in await collect(ear)] == [WarningRaised(message="the key is [REDACTED].")]
    assert b"SENTINEL" not in path.read_bytes()


async def test_what_looks_like_a_token_is_masked_wherever_it_stands_in_an_event() -> None:
    token = "ghp_" + "a1B2" * 9
    out = channel(redactor=Redactor())
    call = CallMade(id="c1", name="write_file", input={"content": f"first\n{token}", "lines": [1, token]})
    said = await out.publish(MessageSaid(role="assistant", content=f"it is {token}", tool_calls=(call,)))
    plain = await out.publish(MessageSaid(role="assistant", content="d670460b4b4aece5915caf5c68d12f560a9fe3e4"))
    await out.close()
    masked = CallMade(id="c1", name="write_file", input={"content": "first\n[REDACTED]", "lines": [1, "[REDACTED]"]})
    assert said.event == MessageSaid(role="assistant", content="it is [REDACTED]", tool_calls=(masked,))
    assert plain.event == MessageSaid(role="assistant", content="d670460b4b4aece5915caf5c68d12f560a9fe3e4")


async def test_whoever_approves_sees_all_but_known_keys() -> None:
    out = channel(redactor=Redactor(("sk-SENTINEL",)))
    command = "curl https://me:$(id)@example.org -H 'x: sk-SENTINEL'"
    asked = ApprovalRequested(approval_id="a", tool="run_command", command=command, cwd="/", reason="", rule="")
    heard_of = await out.publish(asked)
    await out.close()
    assert isinstance(heard_of.event, ApprovalRequested)
    assert heard_of.event.command == command.replace("sk-SENTINEL", "[REDACTED]")


async def test_a_cancelled_publisher_does_not_take_its_event_back(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    out = channel(FileLog(path))
    publishing = asyncio.ensure_future(out.publish(WarningRaised(message="happened")))
    await asyncio.sleep(0)
    publishing.cancel()
    await out.close()
    assert [envelope.event for envelope in read_events(path)] == [WarningRaised(message="happened")]
