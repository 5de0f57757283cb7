"""The tool executor of every backend whose tools run in this process: registry, interceptors, jobs, web."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from agent.backends.backend import Backend
from tooling.contract.action import Action, Adjustment, Approver, Effect, Judge, Verdict
from tooling.contract.context import ExecCtx
from tooling.contract.interceptor import Interceptor
from tooling.contract.json_codec import DecodeError, JsonObject, decode
from tooling.contract.memory import Memory
from tooling.contract.question import Asker
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.scheduler import TaskScheduler
from tooling.contract.tool import AnyTool, SavedTasks, ToolServices, ToolSpec, no_saved_tasks
from tooling.jobs import BackgroundJobs
from tooling.output import MIN_OUTPUT_CHARS
from tooling.permission import PermissionInterceptor
from tooling.registry import ToolRegistry, load_tools
from tooling.safety.action_judge import ActionJudge
from tooling.safety.judges import block_secret_leaks
from tooling.safety.secrets.redact import Redactor
from tooling.web.session import WebSession

if TYPE_CHECKING:
    from tooling.invoke import Invoker


class LocalToolExecutor:
    """Runs every tool in this process, and their commands in the backend."""

    def __init__(
        self,
        registry: ToolRegistry,
        invoker: "Callable[[], Invoker]",
        permission: PermissionInterceptor,
        services: ToolServices,
        own_jobs: BackgroundJobs | None,
        web: WebSession,
    ) -> None:
        self._permission = permission
        self.services = services
        self._registry = registry
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self._make_invoker = invoker
        self._own_jobs = own_jobs
        self._web = web

    @cached_property
    def _invoker(self) -> "Invoker":
        """The invoker of calls; its modules are imported with the first one."""
        return self._make_invoker()

    async def call_tool(self, name: str, args: JsonObject, ctx: ExecCtx) -> ToolResult:
        """Run one call and return its result; never raises."""
        return await self._invoker.invoke(name, args, ctx)

    def judge_call(self, name: str, args: JsonObject, ctx: ExecCtx) -> tuple[Action, Verdict] | None:
        """Judge a call without making it; None if there is no such call."""
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
        return self._registry.spec_of(name) is not None

    def effect_of(self, name: str) -> Effect | None:
        """Return the effect of a tool."""
        spec = self.spec_of(name)
        return spec.effect if spec else None

    def spec_of(self, name: str) -> ToolSpec | None:
        """Return the spec of a tool."""
        return self._registry.spec_of(name)


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
    scheduler: TaskScheduler | None = None,
    jobs: BackgroundJobs | None = None,
    saved_tasks: SavedTasks = no_saved_tasks,
    interceptors: Sequence[Interceptor] = (),
    hooks: Sequence[Interceptor] = (),
) -> tuple[LocalToolExecutor, tuple[str, ...]]:
    """Build the executor of all tools on a backend; return it with the warnings about plugins.

    `adjustments` are added to those of the backend; a given `judge` replaces them all. Given `jobs` are not stopped
    when the executor is closed. `hooks` see calls before they are judged, `interceptors` see permitted calls.
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
        scheduler=scheduler,
        secrets=redactor,
        saved_tasks=saved_tasks,
    )
    registry, warnings = load_tools(services, plugin_tools)
    invoker = partial(_build_invoker, registry, redactor, trim_chars, warn, (*hooks, permission), interceptors)
    return LocalToolExecutor(registry, invoker, permission, services, own_jobs, web), warnings


def _build_invoker(
    registry: ToolRegistry,
    redactor: Redactor,
    trim_chars: Callable[[], int],
    warn: Callable[[str], None] | None,
    before: Sequence[Interceptor],
    permitted: Sequence[Interceptor],
) -> "Invoker":
    """Build the invoker of calls; `before` sees them before they are permitted."""
    from tooling.finish import OutputFinisher, SecretNotice
    from tooling.invoke import Invoker
    from tooling.safety.secrets.secret_files import SecretFiles

    notices = (SecretNotice(warn),) if warn else ()
    return Invoker(
        registry=registry,
        interceptors=(*before, SecretFiles(redactor), *notices, *permitted),
        finisher=OutputFinisher(redactor, trim_chars),
    )
