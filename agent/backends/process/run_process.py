"""Runs one process: start it, collect its output, wait for exit, timeout or cancellation, and clean up."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, Protocol, TypeAlias

from agent.backends.process.output_capture import OutputCollector
from tooling.contract.command import BackgroundProcess, CommandOutput, CommandRequest
from tooling.contract.result import CANCELLED, TIMED_OUT

CANCEL_POLL_S = 0.05
# Time for a terminated command to clean up before it is killed.
GRACE_S = 0.5

_EndReason: TypeAlias = Literal["exited", "timeout", "cancelled"]


class RunningProcess(Protocol):
    """A started process on any backend."""

    @property
    def exited(self) -> "asyncio.Future[None]":
        """A future that is done when the command itself has exited."""
        ...

    @property
    def left_running(self) -> tuple[BackgroundProcess, ...]:
        """Processes that `finish` left running in the background."""
        ...

    @property
    def ended_processes(self) -> int:
        """Number of leftover processes that `finish` killed."""
        ...

    async def stop(self, grace_s: float) -> None:
        """Ask all processes of the command to exit, and give them time to clean up."""
        ...

    async def finish(self, *, in_doubt: bool) -> int:
        """Kill all remaining processes, except those that may stay, and return the exit code.

        `in_doubt` means that some may have left the process group.
        """
        ...


Launch: TypeAlias = Callable[[CommandRequest, Sequence[OutputCollector]], RunningProcess]


async def run_process(request: CommandRequest, launch: Launch, *, grace_s: float) -> CommandOutput:
    """Run until the command exits, times out or is cancelled; its processes end with it unless they may stay."""
    if request.cancel_check is not None and request.cancel_check():
        return CommandOutput(exit_code=CANCELLED, output=b"", cancelled=True)
    sinks = [OutputCollector(cap_bytes=request.cap_bytes, spool=request.spool, on_data=request.on_output)]
    if not request.merge_stderr:
        sinks.append(OutputCollector(cap_bytes=request.cap_bytes))
    try:
        return await _run(request, launch, sinks, grace_s)
    finally:
        for sink in sinks:
            sink.close()


async def _run(
    request: CommandRequest, launch: Launch, sinks: Sequence[OutputCollector], grace_s: float
) -> CommandOutput:
    try:
        process = launch(request, sinks)
    except ValueError as error:
        raise OSError(f"the command cannot be passed to a process: {error}") from error
    end: _EndReason = "cancelled"
    try:
        end = await _wait_for_end(process, request)
    finally:
        try:
            if end != "exited":
                await process.stop(grace_s)
        finally:
            code = await process.finish(in_doubt=end != "exited")
    output = _build_output(sinks, code, end)
    return output if end != "exited" else _add_background(output, process)


async def _wait_for_end(process: RunningProcess, request: CommandRequest) -> _EndReason:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + request.timeout_s
    while not process.exited.done():
        left = deadline - loop.time()
        if left <= 0:
            return "timeout"
        if request.cancel_check is not None and request.cancel_check():
            return "cancelled"
        wait_s = left if request.cancel_check is None else min(left, CANCEL_POLL_S)
        await asyncio.wait({process.exited}, timeout=wait_s)
    return "exited"


def _add_background(output: CommandOutput, process: RunningProcess) -> CommandOutput:
    if not process.left_running and not process.ended_processes:
        return output
    return replace(output, left_running=process.left_running, ended_processes=process.ended_processes)


def _build_output(sinks: Sequence[OutputCollector], code: int, end: _EndReason) -> CommandOutput:
    out = sinks[0]
    return CommandOutput(
        exit_code={"exited": code, "timeout": TIMED_OUT, "cancelled": CANCELLED}[end],
        output=out.output,
        stderr=sinks[1].output if len(sinks) > 1 else b"",
        total_bytes=out.total_bytes,
        cut_at=out.cut_at,
        timed_out=end == "timeout",
        cancelled=end == "cancelled",
        spool=out.spool,
    )
