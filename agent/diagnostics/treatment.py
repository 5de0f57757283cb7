"""Treatment of a command in a run: the verdict first, then the user's rules and approval mode."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from agent.config.rules import CommandRule, rules_in_folder
from agent.config.settings import Settings
from tooling.approvals.policy import Mode, PolicyApprover
from tooling.approvals.rule_text import covers_command
from tooling.approvals.script_content import script_digests
from tooling.contract.action import Action, ApprovalAnswer, Decision, Verdict
from tooling.contract.fast_dataclass import dataclass

Treatment: TypeAlias = Literal["allow", "ask", "deny", "block"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTreatment:
    """The treatment of a command, its reason, and the user's rules that decided it."""

    treatment: Treatment
    reason: str = ""
    rules: tuple[CommandRule, ...] = ()


def treat_command(command: str, verdict: Verdict, cwd: Path, settings: Settings, *, mode: Mode) -> CommandTreatment:
    """Return how a run in a folder would treat a command with this verdict."""
    if verdict.decision is Decision.BLOCK:
        return CommandTreatment(treatment="block", reason=verdict.reason)
    rules = rules_in_folder(settings, cwd)
    policy = PolicyApprover(
        mode=mode,
        allow=[rule.words for rule in rules if rule.effect == "allow"],
        deny=[rule.words for rule in rules if rule.effect == "deny"],
    )
    action = Action(tool="run_command", effect="execute", subject=command, cwd=cwd)
    answer = policy.decide(action, verdict)
    if answer is None:
        return CommandTreatment(treatment="ask", reason=verdict.reason)
    decisive = tuple(_decisive_rules(rules, answer, action, verdict))
    if answer.decision == "allow":
        return CommandTreatment(treatment="allow", rules=decisive)
    return CommandTreatment(treatment="deny", reason=answer.remark, rules=decisive)


def _decisive_rules(
    rules: tuple[CommandRule, ...], answer: ApprovalAnswer, action: Action, verdict: Verdict
) -> Iterator[CommandRule]:
    if answer.by != "a rule":
        return
    for rule in rules:
        if answer.decision == "deny":
            is_decisive = rule.effect == "deny" and rule.words == answer.rule
        else:
            digests = script_digests(verdict.scripts)
            is_decisive = rule.effect == "allow" and (
                rule.words == action.subject.strip()
                or any(covers_command(rule.words, each, digests.get(each, "")) for each in verdict.commands_to_approve)
            )
        if is_decisive:
            yield rule
