"""The tools of a run: backend, rules, approvals, web, memory."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent.backends.backend import Backend, BackendOptions
from agent.backends.shared import SharedBackend
from agent.backends.table import build_backend
from agent.backends.tool_executor import LocalToolExecutor, build_tool_executor
from agent.config.rules import CommandRule, add_rule, rules_for_folder
from agent.config.settings import Settings
from agent.config.user_dirs import config_dir, config_file
from agent.execution.approvals import PendingQuestions, ReportingApprover
from agent.protocol.events import NetworkAttempted, WarningRaised
from agent.run_scope import RunScope
from agent.version import VERSION
from agent.vocabulary.errors import AgentError, ConfigError, SandboxError
from tooling.approvals.policy import PolicyApprover
from tooling.contract.action import Adjustment, Reviewer, Scope
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.memory import Memory
from tooling.jobs import BackgroundJobs
from tooling.output import output_chars_for
from tooling.safety.judges import AllowAll, apply_host_rules
from tooling.web.network_attempt import NetworkAttempt
from tooling.web.session import WebSession
from tooling.web.settings import WebSettings

if TYPE_CHECKING:
    from agent.model.metered_client import MeteredModel

NO_REVIEWER = "approval mode review needs a reviewer model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnvironment:
    """The settings, session and callbacks that the tools of a run need.

    `on_refused` is called if the run must end because no user is present to approve an action, `on_sandbox_error` if
    the sandbox does not work. Without `is_checked` commands are neither judged nor approved. `context_tokens` returns
    the context size of the run's model, if known: more of an output is shown to a model with a larger window.
    `shared_backend` outlives the run.
    """

    settings: Settings
    environ: Mapping[str, str]
    secrets: tuple[str, ...]
    scope: RunScope
    questions: PendingQuestions
    is_user_present: bool
    on_refused: Callable[[str], None]
    on_sandbox_error: Callable[[SandboxError], None]
    is_checked: bool = True
    memory: Memory | None = None
    reviewer: Reviewer | None = None
    context_tokens: Callable[[], int | None] = lambda: None
    shared_backend: SharedBackend | None = None

    def warn(self, message: str) -> None:
        """Emit a warning for the user."""
        self.scope.channel.emit(WarningRaised(message=message))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSetup:
    """The tools of one run and the backend of their commands."""

    executor: LocalToolExecutor
    backend: Backend
    warnings: tuple[str, ...]

    async def close(self) -> None:
        """Stop everything that calls left running."""
        await self.executor.close()
        await self.backend.close()


def build_tools(env: ToolEnvironment) -> ToolSetup:
    """Build the tools of a run; raises ConfigError for invalid host rules."""
    settings = env.settings
    # Ephemeral runs cache nothing.
    cache_dir = env.scope.data_dir / "web" if env.scope.is_persistent else None
    host_rules = _host_rules(settings)
    backend, jobs = _open_backend(env)
    policy = ReportingApprover(policy=_policy(env), channel=env.scope.channel, on_fail=env.on_refused)
    executor, plugin_warnings = build_tool_executor(
        backend,
        judge=None if env.is_checked else AllowAll(),
        approver=policy if env.is_checked else AllowAll(),
        adjustments=host_rules,
        asker=env.questions,
        secrets=env.secrets,
        command_timeout_s=settings.command_timeout_s,
        trim_chars=lambda: settings.output_trim_chars or output_chars_for(env.context_tokens()),
        warn=env.warn,
        web=WebSession(web_settings(settings, cache_dir), on_attempt=lambda attempt: _emit_attempt(env, attempt)),
        memory=env.memory,
        jobs=jobs,
    )
    return ToolSetup(executor=executor, backend=backend, warnings=(*backend.warnings, *plugin_warnings))


def build_reviewer(settings: Settings, client: "MeteredModel", scope: RunScope, request: str) -> Reviewer | None:
    """Return the reviewer, if a model is set for it; raises ConfigError if the approval mode needs one."""
    if not settings.reviewer_model:
        if settings.approval_mode == "review":
            raise ConfigError(NO_REVIEWER, "set reviewer_model, for example with --set reviewer_model=PROVIDER/NAME")
        return None
    from agent.execution.reviewer import ModelReviewer

    return ModelReviewer(
        client=client,
        model=settings.reviewer_model,
        request=request,
        channel=scope.channel,
        timeout_s=settings.reviewer_timeout_s,
        redact=scope.redactor.redact,
        earlier=scope.earlier_exchanges,
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
    """Return the backend, and the background commands that it has kept from earlier runs."""
    if env.shared_backend is not None:
        return env.shared_backend.open(env.settings.backend, _backend_options(env), env.secrets)
    return build_backend(env.settings.backend, _backend_options(env)), None


def _backend_options(env: ToolEnvironment) -> BackendOptions:
    scope = env.scope
    return BackendOptions(
        sandbox_type=env.settings.sandbox_type,
        workspace=scope.cwd,
        extra_dirs=scope.extra_dirs,
        hidden=(scope.data_dir, config_dir(env.environ)),
        outputs=(scope.folder.outputs, *((scope.git_dir,) if scope.git_dir else ())),
        environ=env.environ,
        allow_net=env.settings.allow_net,
        deny_net=env.settings.deny_net,
        socket_dir=scope.folder.root / "net",
        on_attempt=lambda attempt: _emit_attempt(env, attempt),
        warn=env.warn,
        on_sandbox_error=env.on_sandbox_error,
    )


def _policy(env: ToolEnvironment) -> PolicyApprover:
    settings, folder = env.settings, env.scope.cwd
    return PolicyApprover(
        mode=settings.approval_mode,
        allow=rules_for_folder(settings, folder, "allow"),
        deny=rules_for_folder(settings, folder, "deny"),
        on_approval=settings.on_approval,
        user=env.questions if env.is_user_present else None,
        reviewer=env.reviewer,
        # What is done in a worktree is approved when it is merged.
        asks_for_edits=not (env.scope.uses_session_workspace or env.scope.git_dir),
        limits_network=settings.backend != "host",
        only_reads=_only_reads,
        save_rules=lambda scope, rules: _save_rules(env, scope, rules),
    )


def _only_reads(command: str, cwd: Path) -> bool:
    from tooling.safety.shell.read_only import only_reads

    return only_reads(command, cwd)


def _save_rules(env: ToolEnvironment, scope: Scope, rules: tuple[str, ...]) -> None:
    """Save rules that the user allowed for longer than this run; if that fails, they still apply in this run."""
    folder = str(env.scope.cwd) if scope == "project" else ""
    try:
        for words in rules:
            add_rule(config_file(env.environ), CommandRule(effect="allow", words=words, folder=folder))
    except AgentError as error:
        env.warn(f"the rule was not saved: {error.message}")


def _emit_attempt(env: ToolEnvironment, attempt: NetworkAttempt) -> None:
    tried = NetworkAttempted(host=attempt.host, port=attempt.port, allowed=attempt.allowed, reason=attempt.reason)
    env.scope.channel.emit(tried)
