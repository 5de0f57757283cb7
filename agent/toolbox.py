"""The tools of a run with everything around them: the backend, the judge, the policy, the person."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from agent.backends.host import (
    AlwaysAskJudge,
    HostCommandRunner,
    LocalToolExecutor,
    SandboxExecutor,
    build_tool_executor,
)
from agent.backends.process.environment import clean_environment
from agent.backends.sandbox.lazy_runner import LazySandboxRunner, SandboxOptions
from agent.config.rules import CommandRule, add_rule, rules_for_folder
from agent.config.settings import Settings
from agent.config.user_dirs import config_dir, config_file
from agent.execution.approvals import ApprovalGateway, PendingQuestions
from agent.protocol.channel import Channel
from agent.protocol.events import NetworkTried, WarningRaised
from agent.run_scope import RunScope
from agent.vocabulary.errors import AgentError, ConfigError, SandboxError
from agent.web_settings import web_settings
from tooling.approvals.policy import PolicyApprover
from tooling.contract.action import Action, ApprovalAnswer, Approver, Decision, Judge, Scope, Verdict
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.memory import Memory
from tooling.contract.tool import ToolExecutor
from tooling.safety.action_judge import ActionJudge
from tooling.web.network_attempt import NetworkAttempt
from tooling.web.session import WebSession

HOST_BANNER = "commands run on this machine without a box (--backend host); every one of them needs approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnvironment:
    """What the tools of a run work in and with."""

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

    @property
    def channel(self) -> Channel:
        """Return the run's way out."""
        return self.scope.channel

    def warn(self, message: str) -> None:
        """Tell a person something they should know."""
        self.channel.emit(WarningRaised(message=message))


class ToolSetup:
    """The tools of one run, and the box their commands run in."""

    def __init__(self, around: ToolEnvironment) -> None:
        settings = around.settings
        _check_hosts(settings)
        self._sandbox = LazySandboxRunner(_sandbox_options(around)) if settings.backend == "sandbox" else None
        judge: Judge = ActionJudge(warn=around.warn)
        if self._sandbox:
            judge = AllowedHostsJudge(judge, self._sandbox)
        judge = WebHostsJudge(judge, settings)
        approver: Approver = ApprovalGateway(
            policy=_build_policy(around),
            channel=around.channel,
            on_fail=around.on_refused,
            judge=judge,
            place=self._sandbox or NoSandbox(),
        )
        self.executor: ToolExecutor
        self.executor, warnings = build_tool_executor(
            SandboxExecutor if self._sandbox else LocalToolExecutor,
            self._sandbox or HostCommandRunner(clean_environment(around.environ)),
            judge=(judge if self._sandbox else AlwaysAskJudge(judge)) if around.is_checked else AllowAll(),
            approver=approver if around.is_checked else AllowAll(),
            asker=around.questions,
            secrets=around.secrets,
            command_timeout_s=settings.command_timeout_s,
            trim_chars=settings.output_trim_chars,
            plugin_paths=None,
            web=WebSession(
                web_settings(settings, _cache_dir(around)), on_attempt=lambda tried: _emit_attempt(around, tried)
            ),
            memory=around.memory,
        )
        self.warnings = warnings if self._sandbox else (HOST_BANNER, *warnings)

    def start(self) -> None:
        """Make the box ready in the background."""
        if self._sandbox:
            self._sandbox.start()

    async def close(self) -> None:
        """End everything that calls left running."""
        await self.executor.close()
        if self._sandbox:
            await self._sandbox.close()


class NoSandbox:
    """The machine itself: always ready, and every host is open already."""

    async def ready(self) -> None:
        """Return at once."""

    async def allow_host(self, host: str) -> None:
        """Do nothing."""


class AllowedHostsJudge:
    """A judge that does not ask again for hosts that were opened: the proxy holds everybody to them anyway."""

    def __init__(self, judge: Judge, box: LazySandboxRunner) -> None:
        self._judge = judge
        self._sandbox = box

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        """Return the other judge's verdict, milder where only open hosts were the reason."""
        verdict = self._judge.judge(action, ctx)
        if verdict.is_only_network and all(self._sandbox.is_host_allowed(host) for host in verdict.hosts):
            return replace(verdict, decision=Decision.ALLOW, commands_to_approve=())
        return verdict


class WebHostsJudge:
    """A judge that holds the web tools to the same lists of hosts as the commands."""

    def __init__(self, judge: Judge, settings: Settings) -> None:
        self._judge = judge
        self._settings = settings

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        """Return the other judge's verdict: a denied host is blocked, an allowed one not asked for."""
        verdict = self._judge.judge(action, ctx)
        if action.effect != "web" or not verdict.hosts:
            return verdict
        from agent.backends.egress.host_rules import EgressRules

        rules = EgressRules(allow=self._settings.allow_net, deny=self._settings.deny_net)
        for host in verdict.hosts:
            if denied := rules.find_deny_rule(host):
                reason = f"{host} is denied by the rule {denied} of deny_net"
                return replace(
                    verdict, decision=Decision.BLOCK, reasons=(reason,), rule="deny-net", commands_to_approve=()
                )
        if all(map(rules.find_allow_rule, verdict.hosts)):
            return replace(verdict, decision=Decision.ALLOW, commands_to_approve=())
        return verdict


class AllowAll:
    """Lets everything pass: for a person who skips the text check of their own command, never for a model."""

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        """Allow it."""
        return Verdict(decision=Decision.ALLOW)

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        """Allow it."""
        return ApprovalAnswer(decision="allow", by="--skip-check")


def _check_hosts(settings: Settings) -> None:
    if not (settings.allow_net or settings.deny_net):
        return
    from agent.backends.egress.host_rules import EgressRules, HostRuleInvalid

    try:
        EgressRules(allow=settings.allow_net, deny=settings.deny_net)
    except HostRuleInvalid as error:
        hint = "write a name such as example.org, or .example.org for a whole domain"
        raise ConfigError(f"allow_net, deny_net: {error}", hint) from error


def _build_policy(around: ToolEnvironment) -> PolicyApprover:
    settings, folder = around.settings, around.scope.cwd
    return PolicyApprover(
        mode=settings.approval_mode,
        allow=rules_for_folder(settings, folder, "allow"),
        deny=rules_for_folder(settings, folder, "deny"),
        on_approval=settings.on_approval,
        user=around.questions if around.is_user_present else None,
        asks_for_edits=not around.scope.is_own_workspace,
        save_rules=lambda scope, rules: _save_rules(around, scope, rules),
    )


def _emit_attempt(around: ToolEnvironment, attempt: NetworkAttempt) -> None:
    """Let everybody know who was to be reached."""
    tried = NetworkTried(host=attempt.host, port=attempt.port, allowed=attempt.allowed, reason=attempt.reason)
    around.channel.emit(tried)


def _cache_dir(around: ToolEnvironment) -> Path | None:
    """Return where pages are kept from run to run; a run that leaves nothing behind keeps none."""
    return around.scope.data_dir / "web" if around.scope.is_persistent else None


def _sandbox_options(around: ToolEnvironment) -> SandboxOptions:
    return SandboxOptions(
        workspace=around.scope.cwd,
        extra_dirs=around.scope.extra_dirs,
        hidden=(around.scope.data_dir, config_dir(around.environ)),
        environ=around.environ,
        allow_net=around.settings.allow_net,
        deny_net=around.settings.deny_net,
        socket_dir=around.scope.folder.root / "net",
        on_attempt=lambda attempt: _emit_attempt(around, attempt),
        warn=around.warn,
        on_failure=around.on_sandbox_error,
    )


def _save_rules(around: ToolEnvironment, scope: Scope, rules: tuple[str, ...]) -> None:
    """Store what a person allowed for longer than this run; what cannot be stored still holds for the run."""
    folder = str(around.scope.cwd) if scope == "project" else ""
    try:
        for words in rules:
            add_rule(config_file(around.environ), CommandRule(effect="allow", words=words, folder=folder))
    except AgentError as error:
        around.warn(f"the rule was not stored: {error.message}")
