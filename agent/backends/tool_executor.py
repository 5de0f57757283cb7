"""The tool executor of every backend whose tools run in this process: registry, interceptors, jobs, web."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from agent.backends.backend import Backend
from tooling.contract.action import Adjustment, Approver, Judge
from tooling.contract.context import ExecCtx
from tooling.contract.json_codec import JsonObject
from tooling.contract.memory import Memory
from tooling.contract.question import Asker
from tooling.contract.result import ToolResult
from tooling.contract.tool import AnyTool, ToolServices, ToolSpec
from tooling.finish import OutputFinisher
from tooling.invoke import Invoker
from tooling.jobs import BackgroundJobs
from tooling.output import MIN_OUTPUT_CHARS
from tooling.permission import PermissionInterceptor
from tooling.registry import ToolRegistry, load_tools
from tooling.safety.action_judge import ActionJudge
from tooling.safety.judges import block_secret_leaks
from tooling.safety.secrets.redact import Redactor
from tooling.web.session import WebSession


class LocalToolExecutor:
    """Runs every tool in this process, and their commands in the backend."""

    def __init__(
        self, registry: ToolRegistry, invoker: Invoker, own_jobs: BackgroundJobs | None, web: WebSession
    ) -> None:
        self._registry = registry
        self._invoker = invoker
        self._own_jobs = own_jobs
        self._web = web

    async def call_tool(self, name: str, args: JsonObject, ctx: ExecCtx) -> ToolResult:
        """Run one call and return its result; never raises."""
        return await self._invoker.invoke(name, args, ctx)

    async def close(self) -> None:
        """Stop background jobs and close connections."""
        if self._own_jobs is not None:
            await self._own_jobs.close()
        await self._web.close()

    def add_tool(self, tool: AnyTool) -> None:
        """Add a tool that belongs to this run alone."""
        self._registry.register(tool)

    def schemas(self) -> list[Mapping[str, object]]:
        """Return the schemas of the tools that a model may call."""
        return self._registry.schemas()

    def has_tool(self, name: str) -> bool:
        """Return whether `schemas` contains this name."""
        return self._registry.get(name) is not None

    def spec_of(self, name: str) -> ToolSpec | None:
        """Return the spec of a tool."""
        tool = self._registry.get(name)
        return None if tool is None else tool.spec


def build_tool_executor(
    backend: Backend,
    *,
    approver: Approver,
    asker: Asker,
    judge: Judge | None = None,
    adjustments: Sequence[Adjustment] = (),
    secrets: Iterable[str] = (),
    command_timeout_s: float = 120.0,
    trim_chars: Callable[[], int] = lambda: MIN_OUTPUT_CHARS,
    warn: Callable[[str], None] | None = None,
    plugin_paths: Sequence[str] | None = None,
    web: WebSession | None = None,
    memory: Memory | None = None,
    jobs: BackgroundJobs | None = None,
) -> tuple[LocalToolExecutor, tuple[str, ...]]:
    """Build the executor of all tools on a backend; return it with the warnings about plugins.

    `adjustments` are added to those of the backend; an own `judge` replaces them all. Given `jobs` are not stopped when
    the executor is closed.
    """
    redactor = Redactor(secrets)
    web = web or WebSession()
    own_jobs = None
    if jobs is None:
        jobs = own_jobs = BackgroundJobs(backend.runner, redactor.redact_file)
    permission = PermissionInterceptor(
        judge or ActionJudge(warn=warn),
        approver,
        adjustments=() if judge else (*backend.adjustments, *adjustments, block_secret_leaks(redactor)),
        ready=backend.ready,
        allow_host=backend.allow_host,
    )
    services = ToolServices(
        runner=backend.runner,
        asker=asker,
        jobs=jobs,
        command_timeout_s=command_timeout_s,
        web=web,
        action_gate=permission,
        memory=memory,
        secrets=redactor,
    )
    registry, warnings = load_tools(services, paths=plugin_paths)
    invoker = Invoker(
        registry=registry,
        interceptors=(permission,),
        finisher=OutputFinisher(redactor, trim_chars),
    )
    return LocalToolExecutor(registry, invoker, own_jobs, web), warnings
