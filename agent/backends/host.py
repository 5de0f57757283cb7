"""Commands on this machine, without a box: own session, bounded output, nobody left behind."""

import asyncio
from collections.abc import Mapping
from typing import Literal

from agent.backends.collector import OutputCollector
from agent.backends.process import HostProcess
from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.result import CANCELLED, TIMED_OUT

GRACE_S = 0.5
CANCEL_POLL_S = 0.05


class HostCommandRunner:
    """Runs processes directly, in the clean environment it was given."""

    def __init__(self, environment: Mapping[str, str], *, grace_s: float = GRACE_S) -> None:
        self._environment = dict(environment)
        self._grace_s = grace_s

    async def run(self, request: CommandRequest) -> CommandOutput:
        """Run to the end, the time limit or cancellation; no process of it survives the return."""
        if request.cancel_check is not None and request.cancel_check():
            return CommandOutput(exit_code=CANCELLED, output=b"", cancelled=True)
        sinks = [OutputCollector(cap_bytes=request.cap_bytes, spool=request.spool)]
        if not request.merge_stderr:
            sinks.append(OutputCollector(cap_bytes=request.cap_bytes))
        try:
            return await self._run(request, sinks)
        finally:
            for sink in sinks:
                sink.close()

    async def _run(self, request: CommandRequest, sinks: list[OutputCollector]) -> CommandOutput:
        env = {**self._environment, **request.env}
        try:
            process = HostProcess.start(request.argv, cwd=request.cwd, env=env, sinks=sinks)
        except ValueError as error:
            raise OSError(f"the command cannot be passed to a process: {error}") from error
        end: Literal["exited", "timeout", "cancelled"] = "cancelled"
        try:
            end = await _end_of(process, request)
        finally:
            try:
                if end != "exited":
                    await process.stop(self._grace_s)
            finally:
                code = await process.finish(in_doubt=end != "exited")
        return _output(sinks, code, end)


async def _end_of(process: HostProcess, request: CommandRequest) -> Literal["exited", "timeout", "cancelled"]:
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


def _output(sinks: list[OutputCollector], code: int, end: Literal["exited", "timeout", "cancelled"]) -> CommandOutput:
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
