"""The tools of a run: backend, rules, approvals, web, memory."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from agent.backends.backend import Backend, BackendOptions
from agent.backends.shared import SharedBackend
from agent.backends.table import build_backend
from agent.backends.tool_executor import LocalToolExecutor, build_tool_executor
from agent.config.load import LoadedSettings
from agent.config.rules import CommandRule, add_rule, rules_for_folder
from agent.config.settings import Settings
from agent.config.user_dirs import config_dir, config_file
from agent.dispatcher import Dispatcher
from agent.execution.approvals import PendingQuestions, ReportingApprover
from agent.execution.effects import EffectLedger
from agent.execution.graph.plan_permissions import PlanPermissions
from agent.model_setup import secret_names
from agent.planning.estimate import total_usd
from agent.protocol.events import NetworkAttempted, RuleSaved, WarningRaised
from agent.run_scope import RunScope
from agent.sessions.checkpoints.checkpoints import Checkpoints
from agent.version import VERSION
from agent.vocabulary.errors import AgentError, ConfigError, SandboxError
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.unfinished import UnfinishedRun
from tooling.approvals.manifest import GivenManifest, Manifest
from tooling.approvals.policy import PolicyApprover
from tooling.contract.action import Adjustment, Reviewer, Scope
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.interceptor import Interceptor
from tooling.contract.memory import Memory
from tooling.contract.result import TaskItem
from tooling.contract.scheduler import TaskScheduler
from tooling.contract.tool import schema_name
from tooling.jobs import BackgroundJobs
from tooling.output import output_chars_for
from tooling.safety.judges import AllowAll, apply_host_rules
from tooling.web.network_attempt import NetworkAttempt
from tooling.web.session import WebSession
from tooling.web.settings import WebSettings

if TYPE_CHECKING:
    from agent.model.metered_client import MeteredModel
    from agent.plugins.run_plugins import OpenPlugins
    from agent.step_runner import StepFolders
    from tooling.mcp.servers import McpServer

# Cost limit in the manifest of a plan, as a multiple of the estimate.
_COST_ROOM = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnvironment:
    """The settings, session and callbacks that the tools of a run need.

    `on_refused` is called, with a hint, if the run must end because no user is present to approve an action,
    `on_sandbox_error` if the sandbox does not work. Without `is_checked` commands are neither judged nor approved.
    `context_tokens` returns the context size of the run's model, if known: more of an output is shown to a model with
    a larger window. `shared_backend` outlives the run. `resumes` is the run that this one resumes. `mcp_servers` are
    offered in addition to the user's, which `requests`, those of the session so far, may name; `client` and `model`
    are for servers that send requests to the model.
    """

    settings: Settings
    environ: Mapping[str, str]
    secrets: tuple[str, ...]
    scope: RunScope
    questions: PendingQuestions
    is_user_present: bool
    on_refused: Callable[[str, str], None]
    on_sandbox_error: Callable[[SandboxError], None]
    is_checked: bool = True
    memory: Memory | None = None
    scheduler: TaskScheduler | None = None
    reviewer: Reviewer | None = None
    context_tokens: Callable[[], int | None] = lambda: None
    shared_backend: SharedBackend | None = None
    manifest: GivenManifest | None = None
    unfinished: UnfinishedRun | None = None
    plugins: "OpenPlugins | None" = None
    resumes: str | None = None
    mcp_servers: "tuple[McpServer, ...]" = ()
    requests: Callable[[], Sequence[str]] = tuple
    client: "MeteredModel | None" = None
    model: str = ""

    def warn(self, message: str) -> None:
        """Emit a warning for the user."""
        self.scope.channel.emit(WarningRaised(message=message))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSetup:
    """The tools of one run and the backend of their commands."""

    executor: LocalToolExecutor
    backend: Backend
    permissions: PlanPermissions
    effects: EffectLedger
    warnings: tuple[str, ...]
    plugins: "OpenPlugins | None" = None

    async def close(self) -> None:
        """Stop background work of calls."""
        await self.executor.close()
        if self.plugins:
            await self.plugins.close()
        await self.backend.close()


def _saved_tasks(env: ToolEnvironment, ctx: ExecCtx) -> tuple[TaskItem, ...]:
    """Return the list of tasks that a step had written before its run was interrupted."""
    from agent.sessions.views.task_list import read_tasks

    return read_tasks(env.scope.folder.events, ctx.step_id, env.resumes)


def open_scheduler(scope: RunScope, environ: Mapping[str, str], model: str) -> TaskScheduler | None:
    """Return the scheduler of later tasks, for users of the task queue."""
    if not (scope.data_dir / "queue").is_dir():
        return None
    from agent.service.run_scheduler import QueueScheduler

    return QueueScheduler(environ, scope.folder.id, model, keeps_folder=not scope.deletes_files)


def build_tools(env: ToolEnvironment, interceptors: Sequence[Interceptor] = ()) -> ToolSetup:
    """Build the tools of a run, with `interceptors` around the judge; raises ConfigError for invalid host rules."""
    settings = env.settings
    # Ephemeral runs cache nothing.
    cache_dir = env.scope.data_dir / "web" if env.scope.is_persistent else None
    host_rules = _host_rules(settings)
    backend, jobs = _open_backend(env)
    policy = _policy(env, lambda missing: permissions.note_missing(missing))
    reporting = ReportingApprover(
        policy=policy,
        channel=env.scope.channel,
        on_fail=lambda subject: env.on_refused(permissions.refusal_of(subject) or subject, permissions.hint),
    )
    effects = EffectLedger(
        channel=env.scope.channel,
        asker=env.questions,
        backend=settings.backend,
        lineage=env.unfinished.lineage if env.unfinished else env.scope.run_id,
        earlier=env.unfinished.effects if env.unfinished else None,
    )
    executor, plugin_warnings = build_tool_executor(
        backend,
        judge=None if env.is_checked else AllowAll(),
        approver=reporting if env.is_checked else AllowAll(),
        adjustments=host_rules,
        asker=env.questions,
        redactor=env.scope.redactor,
        command_timeout_s=settings.command_timeout_s,
        trim_chars=lambda: settings.output_trim_chars or output_chars_for(env.context_tokens()),
        warn=env.warn,
        web=WebSession(
            replace(web_settings(settings, cache_dir), search_functions=env.plugins.search if env.plugins else {}),
            on_attempt=lambda attempt: _emit_attempt(env, attempt),
        ),
        plugin_tools=env.plugins.tools if env.plugins else (),
        saved_tasks=partial(_saved_tasks, env),
        memory=env.memory,
        scheduler=env.scheduler,
        jobs=jobs,
        hooks=interceptors,
        interceptors=(effects,),
    )
    permissions = PlanPermissions(
        judge_call=executor.judge_call,
        policy=policy,
        ctx_of=env.scope.ctx_of,
        channel=env.scope.channel,
        allow_host=backend.allow_host,
        user=env.questions if env.is_user_present else None,
        given=env.manifest,
    )
    early = env.plugins.take_warnings() if env.plugins else ()
    return ToolSetup(
        executor=executor,
        backend=backend,
        permissions=permissions,
        effects=effects,
        warnings=(*backend.warnings, *early, *plugin_warnings, *_add_mcp_tools(env, executor)),
        plugins=env.plugins,
    )


def limit_settings(loaded: LoadedSettings, given: GivenManifest | None) -> Settings:
    """Return the settings of a run under a manifest: no host or cost beyond it, and no silent denials."""
    settings = loaded.settings
    if given is None:
        return settings
    limits = [limit for limit in (settings.max_budget_usd, given.manifest.max_usd) if limit is not None]
    is_chosen = loaded.origins["on_approval"].layer != "default"
    return replace(
        settings,
        allow_net=given.manifest.hosts,
        max_budget_usd=min(limits) if limits else None,
        on_approval=settings.on_approval if is_chosen else "fail",
    )


def plan_manifest(permissions: PlanPermissions, settings: Settings, model: str, steps: Sequence[PlanStep]) -> Manifest:
    """Return the manifest of a plan: the needs of its steps, the keys, and a cost limit with a margin for retries."""
    estimate = total_usd(steps)
    limit = ceil(estimate * _COST_ROOM * 100) / 100 if estimate else None
    secrets = secret_names(settings, model if any(step.type == "task" for step in steps) else "", steps)
    return replace(
        permissions.sheet(steps),
        secrets=secrets,
        max_usd=limit if settings.max_budget_usd is None else settings.max_budget_usd,
    )


def _add_mcp_tools(env: ToolEnvironment, executor: LocalToolExecutor) -> Sequence[str]:
    """Add the tools of the offered MCP servers, and return the warnings; without servers nothing is imported."""
    has_own = env.settings.mcp != "never" and (config_dir(env.environ) / "mcp.json").exists()
    if not env.mcp_servers and not has_own:
        return ()
    from agent.config.mcp_file import choose_servers

    chosen = choose_servers(env.environ, env.mcp_servers, env.settings.mcp, env.requests)
    if not chosen.servers:
        return chosen.problems
    from agent.mcp_setup import add_mcp_tools

    return (*chosen.problems, *add_mcp_tools(env, executor, chosen.servers))


def open_step_folders(
    scope: RunScope,
    environ: Mapping[str, str],
    tools: ToolSetup,
    dispatcher: Dispatcher,
    checkpoints: Checkpoints | None,
) -> "StepFolders | None":
    """Return the worktrees of steps, if the run has its own."""
    if scope.worktree is None:
        return None
    from agent.workspace.step_worktrees import StepWorktrees
    from agent.workspace.worktrees import Worktrees

    names = tuple(schema_name(schema) for schema in tools.executor.schemas())
    return StepWorktrees(
        worktrees=Worktrees(scope.data_dir, environ),
        run=scope.worktree,
        folder=scope.cwd,
        tools_of=lambda step: names if (allowed := dispatcher.profile_of(step).allowed_tools) is None else allowed,
        effect_of=tools.executor.effect_of,
        runner=tools.backend.runner,
        record=checkpoints.record_as if checkpoints else None,
        warn=lambda message: scope.channel.emit(WarningRaised(message=message)),
    )


def web_settings(settings: Settings, cache_dir: Path | None = None) -> WebSettings:
    """Return the limits, choices and keys of the web tools; without a folder no page is cached."""
    return WebSettings(
        allow_loopback=settings.web_allow_loopback,
        timeout_s=settings.web_timeout_s,
        max_bytes=settings.web_max_bytes,
        user_agent=f"Mozilla/5.0 (compatible; windlass/{VERSION})",
        keys=settings.keys,
        cache_dir=cache_dir if settings.web_cache else None,
        cache_bytes=settings.web_cache_mb * 1_000_000,
        respects_robots=settings.web_robots,
        host_connections=settings.web_host_connections,
        host_pause_s=settings.web_host_pause_s,
        max_chars=settings.fetch_max_chars,
        reader=settings.web_reader,
        reader_url=settings.web_reader_url,
        search_order=settings.search_order,
        search_fanout=settings.search_fanout,
        search_urls=settings.search_urls,
        search_timeout_s=settings.search_timeout_s,
    )


def _host_rules(settings: Settings) -> Sequence[Adjustment]:
    """Return the adjustment that applies the host lists to the web tools; none without lists."""
    if not (settings.allow_net or settings.deny_net):
        return ()
    from agent.backends.egress.host_rules import EgressRules, HostRuleInvalid

    try:
        rules = EgressRules(allow=settings.allow_net, deny=settings.deny_net)
    except HostRuleInvalid as error:
        hint = "write a name such as example.org, or .example.org for a whole domain"
        raise ConfigError(f"allow_net, deny_net: {error}", hint) from error
    return (apply_host_rules(rules.find_deny_rule, rules.find_allow_rule),)


def _open_backend(env: ToolEnvironment) -> tuple[Backend, BackgroundJobs | None]:
    """Return the backend, and the background commands that it kept from earlier runs."""
    if env.shared_backend is not None:
        return env.shared_backend.open(env.settings.backend, backend_options(env), env.secrets)
    return build_backend(env.settings.backend, backend_options(env)), None


def backend_options(env: ToolEnvironment) -> BackendOptions:
    """Return the access rights of a run's commands."""
    scope, worktree = env.scope, env.scope.worktree
    if worktree:
        # Visible to commands from the start; the worktrees of steps are created in it later.
        worktree.steps_dir.mkdir(mode=0o700, exist_ok=True)
    return BackendOptions(
        sandbox_type=env.settings.sandbox_type,
        image=env.settings.docker_image,
        workspace=scope.cwd,
        extra_dirs=(*scope.extra_dirs, *((worktree.steps_dir,) if worktree else ())),
        hidden=(scope.data_dir, config_dir(env.environ)),
        outputs=(scope.folder.outputs, *scope.read_dirs, *((worktree.common_git_dir,) if worktree else ())),
        environ=env.environ,
        allow_net=env.settings.allow_net,
        deny_net=env.settings.deny_net,
        socket_dir=scope.folder.root / "net",
        on_attempt=lambda attempt: _emit_attempt(env, attempt),
        warn=env.warn,
        on_sandbox_error=env.on_sandbox_error,
    )


def _policy(env: ToolEnvironment, on_missing: Callable[[Manifest], None]) -> PolicyApprover:
    settings, folder = env.settings, env.scope.cwd
    return PolicyApprover(
        mode=settings.approval_mode,
        allow=rules_for_folder(settings, folder, "allow"),
        deny=rules_for_folder(settings, folder, "deny"),
        on_approval=settings.on_approval,
        user=env.questions if env.is_user_present else None,
        reviewer=env.reviewer,
        # Changes in a worktree are approved when they are merged.
        asks_for_edits=not (env.scope.uses_session_workspace or env.scope.worktree),
        limits_network=settings.backend != "host",
        only_reads=_only_reads,
        save_rules=lambda scope, rules: _save_rules(env, scope, rules),
        manifest=env.manifest.manifest if env.manifest else None,
        on_missing=on_missing,
    )


def _only_reads(command: str, cwd: Path) -> bool:
    from tooling.safety.shell.read_only import only_reads

    return only_reads(command, cwd)


def _save_rules(env: ToolEnvironment, scope: Scope, rules: tuple[str, ...]) -> None:
    """Save rules that the user allowed for longer than this run; if that fails, they still apply in this run."""
    folder = str(env.scope.cwd) if scope == "project" else ""
    try:
        file = config_file(env.environ)
        for words in rules:
            add_rule(file, CommandRule(effect="allow", words=words, folder=folder))
            env.scope.channel.emit(RuleSaved(rule=words, folder=folder, file=str(file)))
    except AgentError as error:
        env.warn(f"the rule was not saved: {error.message}")


def _emit_attempt(env: ToolEnvironment, attempt: NetworkAttempt) -> "asyncio.Future[None]":
    """Log a connection; data over an allowed one waits until that is on disk."""
    tried = NetworkAttempted(host=attempt.host, port=attempt.port, allowed=attempt.allowed, reason=attempt.reason)
    return env.scope.channel.emit_durable(tried)
