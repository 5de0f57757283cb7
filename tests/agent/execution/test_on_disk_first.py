"""What a call does follows its start on disk, and the disk is waited for only there."""

import asyncio
import errno
import json
import threading

import pytest

from agent.protocol.channel import LogWriteError
from tests.agent.execution.step_harness import TOOL_FUNCTIONS, StepHarness, call_reply, succeed, text_reply
from tooling.contract.json_codec import JsonObject
from tooling.contract.result import ToolResult


class BlockingLog:
    """A disk that keeps events up to one of a kind, and the rest when it is let go; or that is full from there on."""

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


def recording_tools(made: list[list[str]], log: BlockingLog) -> dict[str, object]:
    async def deed(args: JsonObject) -> ToolResult:
        made.append(list(log.written))
        return await succeed(args)

    return {**TOOL_FUNCTIONS, "write": ("write", deed)}


async def wait_reached(log: BlockingLog) -> None:
    await asyncio.to_thread(log.reached.wait, 10)
    # Whoever does not wait for the disk goes on now.
    for _ in range(50):
        await asyncio.sleep(0)


async def test_nothing_is_done_before_its_start_is_on_disk() -> None:
    made: list[list[str]] = []
    log = BlockingLog("tool.started")
    shop = StepHarness(call_reply("write"), text_reply("ok"), log=log, functions=recording_tools(made, log))  # type: ignore[arg-type]
    running = asyncio.ensure_future(shop.run())
    await wait_reached(log)
    assert made == []
    log.resume.set()
    assert (await running).status == "ok"
    assert [kinds[-1] for kinds in made] == ["tool.started"]
    await shop.channel.close()


async def test_a_model_reads_a_result_while_the_disk_is_busy_but_nothing_follows_from_it() -> None:
    made: list[list[str]] = []
    log = BlockingLog("tool.completed")
    shop = StepHarness(
        call_reply("write", n=1),
        call_reply("write", n=2),
        text_reply("ok"),
        log=log,
        functions=recording_tools(made, log),
    )  # type: ignore[arg-type]
    running = asyncio.ensure_future(shop.run())
    await wait_reached(log)
    assert (len(shop.client.requests), len(made)) == (2, 1)
    log.resume.set()
    assert (await running).status == "ok"
    assert [kinds.count("tool.completed") for kinds in made] == [0, 1]
    await shop.channel.close()


@pytest.mark.parametrize(("held", "done_before"), [("tool.started", 0), ("tool.completed", 1)])
async def test_on_a_full_disk_nothing_more_is_done(held: str, done_before: int) -> None:
    made: list[list[str]] = []
    log = BlockingLog(held, is_full=True)
    log.resume.set()
    shop = StepHarness(
        call_reply("write", n=1),
        call_reply("write", n=2),
        text_reply("ok"),
        log=log,
        functions=recording_tools(made, log),
    )  # type: ignore[arg-type]
    with pytest.raises(LogWriteError, match="No space left"):
        await shop.run()
    assert len(made) == done_before
    await shop.channel.close()
