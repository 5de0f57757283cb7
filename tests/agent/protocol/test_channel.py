"""The event channel: order, durability, delivery, redaction."""

import asyncio
import errno
from pathlib import Path

import pytest

from agent.protocol.channel import DELTA_BACKLOG, Channel, LogWriteError
from agent.protocol.events import (
    ApprovalRequested,
    CallMade,
    ErrorRaised,
    MessageAdded,
    RunStarted,
    ToolOutput,
    WarningRaised,
)
from agent.sessions.log.event_log import FileLog, last_seq, read_events
from tooling.safety.secrets.redact import Redactor


class SlowLog:
    """A log that counts appends and is slow enough for events to queue up."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def append(self, lines: bytes) -> None:
        import time

        time.sleep(0.01)
        self.batches.append(lines.count(b"\n"))


class FullDisk:
    def append(self, lines: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def make_channel(log: object = None, **more: object) -> Channel:
    return Channel(session_id="s", run_id="r", log=log, **more)  # type: ignore[arg-type]


async def collect(subscription: object) -> list[object]:
    return [envelope async for envelope in subscription]  # type: ignore[attr-defined]


async def test_events_are_numbered_in_the_order_they_were_published(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    channel = make_channel(FileLog(path), first_seq=7)
    subscription = channel.subscribe()
    await asyncio.gather(*(channel.publish(WarningRaised(message=str(n))) for n in range(20)))
    await channel.close()
    assert [envelope.seq for envelope in await collect(subscription)] == list(range(7, 27))
    assert [envelope.seq for envelope in read_events(path)] == list(range(7, 27))
    assert last_seq(path) == 26


async def test_a_durable_event_is_on_disk_before_it_is_delivered(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    channel = make_channel(FileLog(path))
    subscription = channel.subscribe()

    async def check() -> None:
        async for envelope in subscription:
            assert any(kept.seq == envelope.seq for kept in read_events(path))

    checking = asyncio.ensure_future(check())
    for number in range(10):
        await channel.publish(WarningRaised(message=str(number)))
    await channel.close()
    await checking


async def test_an_event_that_nobody_waits_for_shares_the_write_of_the_one_that_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent.protocol.channel.GROUP_S", 60.0)
    log = SlowLog()
    channel = make_channel(log)
    events = channel.subscribe()
    channel.emit(WarningRaised(message="first"))
    for _ in range(20):
        await asyncio.sleep(0)
    await channel.publish(WarningRaised(message="second"))
    channel.emit(WarningRaised(message="last"))
    await channel.close()
    assert log.batches == [2, 1]
    assert [envelope.event.message for envelope in await collect(events)] == ["first", "second", "last"]  # type: ignore[attr-defined]


async def test_events_that_arrive_during_a_write_share_the_next_one() -> None:
    log = SlowLog()
    channel = make_channel(log)
    await asyncio.gather(*(channel.publish(WarningRaised(message=str(n))) for n in range(50)))
    await channel.close()
    assert sum(log.batches) == 50
    assert len(log.batches) <= 3


async def test_a_slow_subscriber_loses_fragments_but_no_durable_events() -> None:
    channel = make_channel()
    subscription = channel.subscribe()
    for number in range(DELTA_BACKLOG * 2):
        channel.emit(MessageAdded(role="assistant", content=str(number), delta=True))
    for number in range(100):
        await channel.publish(WarningRaised(message=str(number)))
    await channel.close()
    events = [envelope.event for envelope in await collect(subscription)]
    assert sum(isinstance(event, MessageAdded) for event in events) == DELTA_BACKLOG
    assert sum(isinstance(event, WarningRaised) for event in events) == 100


async def test_fragments_are_not_logged(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    channel = make_channel(FileLog(path))
    channel.emit(MessageAdded(role="assistant", content="frag", delta=True))
    await channel.publish(WarningRaised(message="kept"))
    await channel.close()
    assert [envelope.event for envelope in read_events(path)] == [WarningRaised(message="kept")]


async def test_on_a_full_disk_publishing_fails_but_start_and_end_are_delivered() -> None:
    channel = make_channel(FullDisk())
    subscription = channel.subscribe()
    started = RunStarted(model="", planner_model="", cwd="", workspace="", backend="", approval_mode="", tools=())
    channel.emit(started)
    with pytest.raises(LogWriteError, match="No space left"):
        await channel.publish(WarningRaised(message="lost"))
    await channel.publish(ErrorRaised(message="the end"))
    await channel.close()
    assert [envelope.event for envelope in await collect(subscription)] == [started, ErrorRaised(message="the end")]


async def test_a_known_secret_never_reaches_a_subscriber_or_the_log(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    channel = make_channel(FileLog(path), redactor=Redactor(("sk-SENTINEL",)))
    subscription = channel.subscribe()
    await channel.publish(WarningRaised(message="the key is sk-SENTINEL."))
    await channel.close()
    assert [envelope.event for envelope in await collect(subscription)] == [
        WarningRaised(message="the key is [REDACTED].")
    ]
    assert b"SENTINEL" not in path.read_bytes()


async def test_a_token_is_masked_in_every_field_of_an_event() -> None:
    token = "ghp_" + "a1B2" * 9
    channel = make_channel(redactor=Redactor())
    call = CallMade(id="c1", name="write_file", input={"content": f"first\n{token}", "lines": [1, token]})
    said = await channel.publish(MessageAdded(role="assistant", content=f"it is {token}", tool_calls=(call,)))
    plain = await channel.publish(MessageAdded(role="assistant", content="d670460b4b4aece5915caf5c68d12f560a9fe3e4"))
    await channel.close()
    masked = CallMade(id="c1", name="write_file", input={"content": "first\n[REDACTED]", "lines": [1, "[REDACTED]"]})
    assert said.event == MessageAdded(role="assistant", content="it is [REDACTED]", tool_calls=(masked,))
    assert plain.event == MessageAdded(role="assistant", content="d670460b4b4aece5915caf5c68d12f560a9fe3e4")


@pytest.mark.parametrize("end", ["", "\n-----END RSA PRIVATE KEY-----"])
async def test_the_live_output_of_a_command_is_masked_with_the_lines_before_it(end: str) -> None:
    channel = make_channel(redactor=Redactor())
    subscription = channel.subscribe()
    body = "\n".join(["MIIEpAIBAAKCAQEA" * 4] * 40)
    output = f"one\ntwo\n-----BEGIN RSA PRIVATE KEY-----\n{body}{end}"
    channel.emit(ToolOutput(tool_id="1", text=output), step_id="a")
    await channel.close()
    (shown,) = [envelope.event.text for envelope in await collect(subscription)]  # type: ignore[attr-defined]
    assert "two" in shown and "MIIE" not in shown


async def test_an_approval_request_masks_only_known_secrets() -> None:
    channel = make_channel(redactor=Redactor(("sk-SENTINEL",)))
    command = "curl https://me:$(id)@example.org -H 'x: sk-SENTINEL'"
    asked = ApprovalRequested(approval_id="a", tool="run_command", command=command, cwd="/", reason="", rule="")
    envelope = await channel.publish(asked)
    await channel.close()
    assert isinstance(envelope.event, ApprovalRequested)
    assert envelope.event.command == command.replace("sk-SENTINEL", "[REDACTED]")


async def test_an_event_is_logged_even_if_its_publisher_is_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    channel = make_channel(FileLog(path))
    publishing = asyncio.ensure_future(channel.publish(WarningRaised(message="happened")))
    await asyncio.sleep(0)
    publishing.cancel()
    await channel.close()
    assert [envelope.event for envelope in read_events(path)] == [WarningRaised(message="happened")]


async def test_the_output_of_a_running_call_is_masked_and_not_logged(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    channel = make_channel(FileLog(path), redactor=Redactor(("sk-SENTINEL",)))
    subscription = channel.subscribe()
    channel.emit(ToolOutput(tool_id="1", text="key sk-SENTINEL"), step_id="lead")
    await channel.close()
    (envelope,) = await collect(subscription)
    assert "SENTINEL" not in envelope.event.text and envelope.event.text.startswith("key ")  # type: ignore[attr-defined]
    assert list(read_events(path)) == []


async def test_events_that_are_held_back_are_written_together_and_heard_after_the_release() -> None:
    log = SlowLog()
    channel = make_channel(log)
    heard = channel.subscribe()
    channel.hold()
    events = [WarningRaised(message="one"), WarningRaised(message="two")]
    channel.emit(events[0])
    done = channel.emit_durable(events[1])
    await asyncio.sleep(0)
    assert (log.batches, done.done()) == ([], False)
    channel.release()
    await done
    assert log.batches == [2]
    await channel.close()
    assert [envelope.event for envelope in await collect(heard)] == events  # type: ignore[attr-defined]
