"""The tools of a run with everything around them: the backend, the judge, the policy, the person."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.backends.environment import clean_environment
from agent.backends.host import HostCommandRunner, HostExecutor, wire_executor
from agent.config.places import config_file
from agent.config.rules import Rule, add_rule, in_folder
from agent.config.settings import Settings
from agent.execution.person import Person, Witness
from agent.protocol.channel import Channel
from agent.protocol.events import WarningRaised
from agent.run_scope import RunScope
from agent.vocabulary.errors import AgentError
from tooling.approvals.policy import PolicyApprover
from tooling.contract.action import Action, ApprovalAnswer, Approver, Decision, Judge, Scope, Verdict
from tooling.contract.context import ExecCtx
from tooling.contract.tool import ToolExecutor
from tooling.safety.judge import ActionJudge


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
    is_checked: bool = True

    @property
    def channel(self) -> Channel:
        """Return the run's way out."""
        return self.scope.channel


def open_toolbox(around: Surroundings) -> tuple[ToolExecutor, tuple[str, ...]]:
    """Return the tools and warnings about plugins that could not be loaded."""
    settings, folder = around.settings, around.scope.cwd
    policy = PolicyApprover(
        mode=settings.approval_mode,
        allow=in_folder(settings, folder, "allow"),
        deny=in_folder(settings, folder, "deny"),
        on_approval=settings.on_approval,
        person=around.person if around.is_person_present else None,
        asks_for_edits=not around.scope.is_own_workspace,
        keep_rules=lambda scope, rules: _keep_rules(around, scope, rules),
    )
    judge: Judge = ActionJudge(warn=lambda message: around.channel.whisper(WarningRaised(message=message)))
    approver: Approver = Witness(policy=policy, channel=around.channel, on_fail=around.on_refused)
    return wire_executor(
        HostExecutor,
        HostCommandRunner(clean_environment(around.environ)),
        judge=judge if around.is_checked else Unchecked(),
        approver=approver if around.is_checked else Unchecked(),
        asker=around.person,
        secrets=around.secrets,
        command_timeout_s=settings.command_timeout_s,
        trim_chars=settings.output_trim_chars,
        plugin_paths=None,
    )


class Unchecked:
    """Lets everything pass: for a person who skips the text check of their own command, never for a model."""

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        """Allow it."""
        return Verdict(decision=Decision.ALLOW)

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        """Allow it."""
        return ApprovalAnswer(decision="allow", by="--skip-check")


def _keep_rules(around: Surroundings, scope: Scope, rules: tuple[str, ...]) -> None:
    """Store what a person allowed for longer than this run; what cannot be stored still holds for the run."""
    folder = str(around.scope.cwd) if scope == "project" else ""
    try:
        for words in rules:
            add_rule(config_file(around.environ), Rule(effect="allow", words=words, folder=folder))
    except AgentError as error:
        around.channel.whisper(WarningRaised(message=f"the rule was not stored: {error.message}"))
