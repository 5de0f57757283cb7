"""The tool executor of every backend whose tools run in this process: registry, interceptors, jobs, web."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from agent.backends.backend import Backend
from tooling.contract.action import Action, Adjustment, Approver, Effect, Judge, Verdict
from tooling.contract.context import ExecCtx
from tooling.contract.interceptor import Interceptor
from tooling.contract.json_codec import DecodeError, JsonObject, decode
from tooling.contract.memory import Memory
from tooling.contract.question import Asker
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.tool import AnyTool, SavedTasks, ToolServices, ToolSpec, no_saved_tasks
from tooling.finish import OutputFinisher, SecretNotice
from tooling.invoke import Invoker
from tooling.jobs import BackgroundJobs
from tooling.output import MIN_OUTPUT_CHARS
from tooling.permission import PermissionInterceptor
from tooling.registry import ToolRegistry, load_tools
from tooling.safety.action_judge import ActionJudge
from tooling.safety.judges import block_secret_leaks
from tooling.safety.secrets.redact import Redactor
from tooling.safety.secrets.secret_files import SecretFiles
from tooling.web.session import WebSession


class LocalToolExecutor:
    """Runs every tool in this process, and their commands in the backend."""

    def __init__(
        self,
        registry: ToolRegistry,
        invoker: Invoker,
        permission: PermissionInterceptor,
        services: ToolServices,
        own_jobs: BackgroundJobs | None,
        web: WebSession,
    ) -> None:
        self._permission = permission
        self.services = services
        self._registry = registry
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self._invoker = invoker
        self._own_jobs = own_jobs
        self._web = web

    async def call_tool(self, name: str, args: JsonObject, ctx: ExecCtx) -> ToolResult:
        """Run one call and return its result; never raises."""
        return await self._invoker.invoke(name, args, ctx)

    def judge_call(self, name: str, args: JsonObject, ctx: ExecCtx) -> tuple[Action, Verdict] | None:
        """Judge a call that is not made yet; None if there is no such call."""
        tool = self._registry.get(name)
        if tool is None:
            return None
        try:
            action = tool.action(decode(tool.params, args), ctx)
        except (DecodeError, ToolError):
            # The call itself will report it.
            return None
        return action, self._permission.verdict(action, ctx, always_asks=tool.spec.requires_approval)

    async def close(self) -> None:
        """Stop background jobs and close connections."""
        for close in self._closers:
            await close()
        if self._own_jobs is not None:
            await self._own_jobs.close()
        await self._web.close()

    def add_tool(self, tool: AnyTool, *, is_listed: bool = True) -> None:
        """Add a tool that belongs to this run alone; raises RegistrationError."""
        self._registry.register(tool, is_listed=is_listed)

    def call_at_close(self, close: Callable[[], Awaitable[None]]) -> None:
        """Close something together with the executor."""
        self._closers.append(close)

    def schemas(self) -> list[Mapping[str, object]]:
        """Return the schemas of the tools that a model may call."""
        return self._registry.schemas()

    def has_tool(self, name: str) -> bool:
        """Return whether `schemas` contains this name."""
        return self._registry.get(name) is not None

    def effect_of(self, name: str) -> Effect | None:
        """Return the effect of a tool."""
        spec = self.spec_of(name)
        return spec.effect if spec else None

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
    redactor: Redactor | None = None,
    command_timeout_s: float = 120.0,
    trim_chars: Callable[[], int] = lambda: MIN_OUTPUT_CHARS,
    warn: Callable[[str], None] | None = None,
    plugin_tools: Iterable[type[AnyTool]] = (),
    web: WebSession | None = None,
    memory: Memory | None = None,
    jobs: BackgroundJobs | None = None,
    saved_tasks: SavedTasks = no_saved_tasks,
    interceptors: Sequence[Interceptor] = (),
    hooks: Sequence[Interceptor] = (),
) -> tuple[LocalToolExecutor, tuple[str, ...]]:
    """Build the executor of all tools on a backend; return it with the warnings about plugins.

    `adjustments` are added to those of the backend; an own `judge` replaces them all. Given `jobs` are not stopped when
    the executor is closed. `hooks` see a call before it is judged, `interceptors` calls that are permitted.
    """
    redactor = redactor or Redactor()
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
        saved_tasks=saved_tasks,
    )
    registry, warnings = load_tools(services, plugin_tools)
    invoker = Invoker(
        registry=registry,
        interceptors=(
            *hooks,
            permission,
            SecretFiles(redactor),
            *((SecretNotice(warn),) if warn else ()),
            *interceptors,
        ),
        finisher=OutputFinisher(redactor, trim_chars),
    )
    return LocalToolExecutor(registry, invoker, permission, services, own_jobs, web), warnings
