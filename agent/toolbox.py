"""The tools of a run with everything around them: the backend, the judge, the policy, the person."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from agent.backends.host import EveryCommandAsks, HostCommandRunner, HostExecutor, SandboxExecutor, wire_executor
from agent.backends.process.environment import clean_environment
from agent.backends.sandbox.lazy_runner import BoxedRunner, BoxPlan
from agent.config.places import config_dir, config_file
from agent.config.rules import Rule, add_rule, in_folder
from agent.config.settings import Settings
from agent.execution.approvals import Person, Witness
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
from tooling.web.network_attempt import Attempt
from tooling.web.session import WebDesk

HOST_BANNER = "commands run on this machine without a box (--backend host); every one of them needs approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the tools of a run work in and with."""

    settings: Settings
    environ: Mapping[str, str]
    secrets: tuple[str, ...]
    scope: RunScope
    person: Person
    is_person_present: bool
    on_refused: Callable[[str], None]
    on_broken: Callable[[SandboxError], None]
    is_checked: bool = True
    memory: Memory | None = None

    @property
    def channel(self) -> Channel:
        """Return the run's way out."""
        return self.scope.channel

    def warn(self, message: str) -> None:
        """Tell a person something they should know."""
        self.channel.whisper(WarningRaised(message=message))


class Toolbox:
    """The tools of one run, and the box their commands run in."""

    def __init__(self, around: Surroundings) -> None:
        settings = around.settings
        _check_hosts(settings)
        self._box = BoxedRunner(_box_plan(around)) if settings.backend == "sandbox" else None
        judge: Judge = ActionJudge(warn=around.warn)
        if self._box:
            judge = KnownHosts(judge, self._box)
        judge = WebHosts(judge, settings)
        approver: Approver = Witness(
            policy=_policy(around),
            channel=around.channel,
            on_fail=around.on_refused,
            judge=judge,
            place=self._box or OpenGround(),
        )
        self.executor: ToolExecutor
        self.executor, warnings = wire_executor(
            SandboxExecutor if self._box else HostExecutor,
            self._box or HostCommandRunner(clean_environment(around.environ)),
            judge=(judge if self._box else EveryCommandAsks(judge)) if around.is_checked else Unchecked(),
            approver=approver if around.is_checked else Unchecked(),
            asker=around.person,
            secrets=around.secrets,
            command_timeout_s=settings.command_timeout_s,
            trim_chars=settings.output_trim_chars,
            plugin_paths=None,
            web=WebDesk(web_settings(settings, _cache_dir(around)), on_attempt=lambda tried: _tell(around, tried)),
            memory=around.memory,
        )
        self.warnings = warnings if self._box else (HOST_BANNER, *warnings)

    def begin(self) -> None:
        """Make the box ready in the background."""
        if self._box:
            self._box.begin()

    async def close(self) -> None:
        """End everything that calls left running."""
        await self.executor.close()
        if self._box:
            await self._box.close()


class OpenGround:
    """The machine itself: always ready, and every host is open already."""

    async def ready(self) -> None:
        """Return at once."""

    async def allow_host(self, host: str) -> None:
        """Do nothing."""


class KnownHosts:
    """A judge that does not ask again for hosts that were opened: the proxy holds everybody to them anyway."""

    def __init__(self, judge: Judge, box: BoxedRunner) -> None:
        self._judge = judge
        self._box = box

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        """Return the other judge's verdict, milder where only open hosts were the reason."""
        verdict = self._judge.judge(action, ctx)
        if verdict.is_only_network and all(self._box.lets_through(host) for host in verdict.hosts):
            return replace(verdict, decision=Decision.ALLOW, asking=())
        return verdict


class WebHosts:
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
            if denied := rules.denying(host):
                reason = f"{host} is denied by the rule {denied} of deny_net"
                return replace(verdict, decision=Decision.BLOCK, reasons=(reason,), rule="deny-net", asking=())
        if all(map(rules.allowing, verdict.hosts)):
            return replace(verdict, decision=Decision.ALLOW, asking=())
        return verdict


class Unchecked:
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


def _policy(around: Surroundings) -> PolicyApprover:
    settings, folder = around.settings, around.scope.cwd
    return PolicyApprover(
        mode=settings.approval_mode,
        allow=in_folder(settings, folder, "allow"),
        deny=in_folder(settings, folder, "deny"),
        on_approval=settings.on_approval,
        person=around.person if around.is_person_present else None,
        asks_for_edits=not around.scope.is_own_workspace,
        keep_rules=lambda scope, rules: _keep_rules(around, scope, rules),
    )


def _tell(around: Surroundings, attempt: Attempt) -> None:
    """Let everybody know who was to be reached."""
    tried = NetworkTried(host=attempt.host, port=attempt.port, allowed=attempt.allowed, reason=attempt.reason)
    around.channel.whisper(tried)


def _cache_dir(around: Surroundings) -> Path | None:
    """Return where pages are kept from run to run; a run that leaves nothing behind keeps none."""
    return around.scope.data_dir / "web" if around.scope.is_kept else None


def _box_plan(around: Surroundings) -> BoxPlan:
    return BoxPlan(
        workspace=around.scope.cwd,
        extra_dirs=around.scope.extra_dirs,
        hidden=(around.scope.data_dir, config_dir(around.environ)),
        environ=around.environ,
        allow_net=around.settings.allow_net,
        deny_net=around.settings.deny_net,
        socket_dir=around.scope.folder.root / "net",
        on_attempt=lambda attempt: _tell(around, attempt),
        warn=around.warn,
        on_broken=around.on_broken,
    )


def _keep_rules(around: Surroundings, scope: Scope, rules: tuple[str, ...]) -> None:
    """Store what a person allowed for longer than this run; what cannot be stored still holds for the run."""
    folder = str(around.scope.cwd) if scope == "project" else ""
    try:
        for words in rules:
            add_rule(config_file(around.environ), Rule(effect="allow", words=words, folder=folder))
    except AgentError as error:
        around.warn(f"the rule was not stored: {error.message}")
