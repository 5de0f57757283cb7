"""Commands on this machine, without a box: own session, bounded output, nobody left behind."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from agent.backends.process.environment import clean_environment
from agent.backends.process.host_process import HostProcess
from agent.backends.process.output_capture import OutputCollector
from agent.backends.process.run_process import run_process
from tooling.contract.action import Action, Approver, Decision, Judge, Verdict
from tooling.contract.command import CommandOutput, CommandRequest, CommandRunner
from tooling.contract.context import ExecCtx
from tooling.contract.json_codec import JsonObject
from tooling.contract.memory import Memory
from tooling.contract.question import Asker
from tooling.contract.result import ToolResult
from tooling.contract.tool import ToolServices, ToolSpec
from tooling.finish import OutputFinisher
from tooling.invoke import Invoker
from tooling.jobs import BackgroundJobs
from tooling.output import OUTPUT_TRIM_LEN, TrimLengths
from tooling.permission import PermissionChecker
from tooling.registry import ToolRegistry, load_tools
from tooling.safety.action_judge import ActionJudge
from tooling.safety.judges import SecretLeakJudge
from tooling.safety.secrets.redact import Redactor
from tooling.web.session import WebSession

GRACE_S = 0.5


class HostCommandRunner:
    """Runs commands without a sandbox, in the given environment."""

    def __init__(self, environment: Mapping[str, str], *, grace_s: float = GRACE_S) -> None:
        self._environment = dict(environment)
        self._grace_s = grace_s

    async def run(self, request: CommandRequest) -> CommandOutput:
        """Run until the command exits, times out or is cancelled; no process it started survives the return."""
        return await run_process(request, self._launch, grace_s=self._grace_s)

    def _launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> HostProcess:
        env = {**self._environment, **request.env}
        process = HostProcess.start(request.argv, cwd=request.cwd, env=env, sinks=sinks)
        # A child that left the process group and holds none of our pipes is found only by scanning all processes.
        process.should_kill_orphans = True
        return process


class AlwaysAskJudge:
    """A judge that lets no command pass unasked: without a box only a person stands between it and the machine."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        """Return the other judge's verdict, made stricter for commands."""
        verdict = self._judge.judge(action, ctx)
        if action.effect != "execute" or verdict.decision is not Decision.ALLOW:
            return verdict
        reason = "commands run on this machine without a box"
        return replace(
            verdict, decision=Decision.ASK, reasons=(reason,), rule="host-backend", commands_to_approve=verdict.commands
        )


class LocalToolExecutor:
    """Runs every tool in this process, and their commands on this machine."""

    def __init__(self, registry: ToolRegistry, invoker: Invoker, jobs: BackgroundJobs, web: WebSession) -> None:
        self._registry = registry
        self._invoker = invoker
        self._jobs = jobs
        self._web = web

    async def call_tool(self, name: str, args: JsonObject, ctx: ExecCtx) -> ToolResult:
        """Run one call and return its result; never raises."""
        return await self._invoker.invoke(name, args, ctx)

    async def close(self) -> None:
        """End what still runs in the background."""
        await self._jobs.close()
        await self._web.close()

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


class SandboxExecutor(LocalToolExecutor):
    """Runs every tool in this process, and their commands in a box."""


E = TypeVar("E", bound=LocalToolExecutor)


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
    asks_for_all: bool = False,
    web: WebSession | None = None,
    memory: Memory | None = None,
) -> tuple[LocalToolExecutor, tuple[str, ...]]:
    """Wire runner, tools, judge, approver and output together; return the executor and warnings about plugins."""
    judge: Judge = ActionJudge(warn=warn)
    return build_tool_executor(
        LocalToolExecutor,
        HostCommandRunner(clean_environment(environ)),
        judge=AlwaysAskJudge(judge) if asks_for_all else judge,
        approver=approver,
        asker=asker,
        secrets=secrets,
        command_timeout_s=command_timeout_s,
        trim_chars=trim_chars,
        plugin_paths=plugin_paths,
        web=web,
        memory=memory,
    )


def build_tool_executor(
    kind: type[E],
    runner: CommandRunner,
    *,
    judge: Judge,
    approver: Approver,
    asker: Asker,
    secrets: Iterable[str],
    command_timeout_s: float,
    trim_chars: int,
    plugin_paths: Sequence[str] | None,
    web: WebSession | None = None,
    memory: Memory | None = None,
) -> tuple[E, tuple[str, ...]]:
    """Put the tools on a runner; every backend whose tools run in this process is made here."""
    redactor = Redactor(secrets)
    judge = SecretLeakJudge(judge, redactor)
    web = web or WebSession()
    jobs = BackgroundJobs(runner, redactor.redact_file)
    services = ToolServices(
        runner=runner,
        asker=asker,
        jobs=jobs,
        command_timeout_s=command_timeout_s,
        web=web,
        action_gate=PermissionChecker(judge, approver),
        memory=memory,
    )
    registry, warnings = load_tools(services, paths=plugin_paths)
    finisher = OutputFinisher(redactor, TrimLengths.for_limit(trim_chars))
    invoker = Invoker(registry=registry, judge=judge, approver=approver, finisher=finisher)
    return kind(registry, invoker, jobs, web), warnings
