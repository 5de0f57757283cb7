"""Commands on this machine, without a box: own session, bounded output, nobody left behind."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from agent.backends.collector import OutputCollector
from agent.backends.environment import clean_environment
from agent.backends.process import HostProcess
from tooling.contract.action import Approver
from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.context import ExecCtx
from tooling.contract.question import Asker
from tooling.contract.result import CANCELLED, TIMED_OUT, ToolResult
from tooling.contract.shape import JsonObject
from tooling.contract.tool import ToolServices, ToolSpec
from tooling.finish import OutputFinisher
from tooling.invoke import Invoker
from tooling.output import OUTPUT_TRIM_LEN, TrimLengths
from tooling.registry import ToolRegistry, load_tools
from tooling.safety.judge import ActionJudge
from tooling.safety.redact import Redactor

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


class HostExecutor:
    """Runs every tool in this process, and their commands on this machine."""

    def __init__(self, registry: ToolRegistry, invoker: Invoker) -> None:
        self._registry = registry
        self._invoker = invoker

    async def call_tool(self, name: str, args: JsonObject, ctx: ExecCtx) -> ToolResult:
        """Run one call and return its result; never raises."""
        return await self._invoker.invoke(name, args, ctx)

    def schemas(self) -> list[Mapping[str, object]]:
        """Return the tool schemas a model may be shown."""
        return self._registry.schemas()

    def has_tool(self, name: str) -> bool:
        """Say whether `schemas` holds this name."""
        return self._registry.get(name) is not None

    def spec_of(self, name: str) -> ToolSpec | None:
        """Return the spec of a tool, for rights and concurrency."""
        tool = self._registry.get(name)
        return None if tool is None else tool.spec


def build_host_executor(
    *,
    environ: Mapping[str, str],
    approver: Approver,
    asker: Asker,
    secrets: Iterable[str] = (),
    command_timeout_s: float = 120.0,
    trim_chars: int = OUTPUT_TRIM_LEN,
    warn: Callable[[str], None] | None = None,
    plugin_paths: Sequence[str] | None = None,
) -> tuple[HostExecutor, tuple[str, ...]]:
    """Wire runner, tools, judge, approver and output together; return the executor and warnings about plugins."""
    runner = HostCommandRunner(clean_environment(environ))
    services = ToolServices(runner=runner, asker=asker, command_timeout_s=command_timeout_s)
    registry, warnings = load_tools(services, paths=plugin_paths)
    finisher = OutputFinisher(Redactor(secrets), TrimLengths.for_limit(trim_chars))
    invoker = Invoker(registry=registry, judge=ActionJudge(warn=warn), approver=approver, finisher=finisher)
    return HostExecutor(registry, invoker), warnings
