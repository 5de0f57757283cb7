"""A call that may change something runs only after its start is on disk, and that is the only wait for the disk."""

import asyncio
import errno
import json
import threading

import pytest

from agent.execution.step.step_result import NOT_SAVED, StepCancelled
from agent.protocol.channel import LogWriteError
from tests.agent.execution.step_harness import TOOL_FUNCTIONS, StepHarness, call_reply, succeed, text_reply
from tooling.contract.json_codec import JsonObject
from tooling.contract.result import ToolResult


class BlockingLog:
    """A log that blocks at the first event of a type until resumed, or is full from there on."""

    def __init__(self, held: str, *, is_full: bool = False) -> None:
        self._held = held
        self._is_full = is_full
        self.written: list[str] = []
        self.reached = threading.Event()
        self.resume = threading.Event()

    def append(self, lines: bytes) -> None:
        kinds = [json.loads(line)["type"] for line in lines.splitlines()]
        if self._held in kinds:
            self.reached.set()
            assert self.resume.wait(10)
            if self._is_full:
                raise OSError(errno.ENOSPC, "No space left on device")
        self.written += kinds


def recording_tools(effects: list[list[str]], log: BlockingLog) -> dict[str, object]:
    async def function(args: JsonObject) -> ToolResult:
        effects.append(list(log.written))
        return await succeed(args)

    return {**TOOL_FUNCTIONS, "write": ("write", function), "read": ("read", function)}


async def wait_reached(log: BlockingLog) -> None:
    await asyncio.to_thread(log.reached.wait, 10)
    # Code that does not wait for the disk continues now.
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_call_does_not_run_before_its_start_is_on_disk() -> None:
    effects: list[list[str]] = []
    log = BlockingLog("tool.started")
    harness = StepHarness(call_reply("write"), text_reply("ok"), log=log, functions=recording_tools(effects, log))  # type: ignore[arg-type]
    running = asyncio.ensure_future(harness.run())
    await wait_reached(log)
    assert effects == []
    log.resume.set()
    assert (await running).status == "ok"
    assert [kinds[-1] for kinds in effects] == ["tool.started"]
    await harness.channel.close()


async def test_a_call_that_only_reads_runs_during_the_write_and_the_model_gets_its_result_after_it() -> None:
    effects: list[list[str]] = []
    log = BlockingLog("tool.started")
    harness = StepHarness(call_reply("read"), text_reply("ok"), log=log, functions=recording_tools(effects, log))  # type: ignore[arg-type]
    running = asyncio.ensure_future(harness.run())
    await wait_reached(log)
    assert (len(harness.client.requests), len(effects)) == (1, 1)
    assert "tool.started" not in effects[0]
    log.resume.set()
    assert (await running).status == "ok"
    await harness.channel.close()


async def test_the_model_gets_a_result_during_a_write_but_the_next_call_waits_for_the_disk() -> None:
    effects: list[list[str]] = []
    log = BlockingLog("tool.completed")
    harness = StepHarness(
        call_reply("write", n=1),
        call_reply("write", n=2),
        text_reply("ok"),
        log=log,
        functions=recording_tools(effects, log),
    )  # type: ignore[arg-type]
    running = asyncio.ensure_future(harness.run())
    await wait_reached(log)
    assert (len(harness.client.requests), len(effects)) == (2, 1)
    log.resume.set()
    assert (await running).status == "ok"
    assert [kinds.count("tool.completed") for kinds in effects] == [0, 1]
    await harness.channel.close()


@pytest.mark.parametrize(("held", "done_before"), [("tool.started", 0), ("tool.completed", 1)])
async def test_no_call_runs_after_the_disk_is_full(held: str, done_before: int) -> None:
    effects: list[list[str]] = []
    log = BlockingLog(held, is_full=True)
    log.resume.set()
    harness = StepHarness(
        call_reply("write", n=1),
        call_reply("write", n=2),
        text_reply("ok"),
        log=log,
        functions=recording_tools(effects, log),
    )  # type: ignore[arg-type]
    with pytest.raises(LogWriteError, match="No space left"):
        await harness.run()
    assert len(effects) == done_before
    await harness.channel.close()


async def test_a_step_cancelled_while_its_result_cannot_be_saved_does_not_count_as_done() -> None:
    log = BlockingLog("step.completed", is_full=True)
    harness = StepHarness(text_reply("ok"), log=log)
    running = asyncio.ensure_future(harness.run())
    await wait_reached(log)
    running.cancel()
    await asyncio.sleep(0)
    log.resume.set()
    with pytest.raises(StepCancelled):
        await running
    assert [(response.status, response.summary) for response in harness.recorded] == [("cancelled", NOT_SAVED)]
    await harness.channel.close()
