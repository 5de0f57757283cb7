"""Adjustments of a verdict: rules of the run, applied after the action judge."""

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import unquote

from tooling.contract.action import Action, Adjustment, ApprovalAnswer, Decision, Verdict
from tooling.contract.context import ExecCtx
from tooling.safety.secrets.redact import Redactor

KNOWN_SECRET = "it contains a key of this agent, and keys are never sent anywhere"
LIKELY_SECRET = "the query contains something that looks like a key, which the search provider would read"


class AllowAll:
    """Allows everything: for users who skip the check of their own command, never for a model."""

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        """Allow it."""
        return Verdict(decision=Decision.ALLOW)

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        """Allow it."""
        return ApprovalAnswer(decision="allow", by="--skip-check")


def allow_open_hosts(is_open: Callable[[str], bool]) -> Adjustment:
    """Allow commands whose only issue is hosts that are already open; the egress proxy enforces them anyway."""

    def adjust(verdict: Verdict, action: Action) -> Verdict:
        if verdict.is_only_network and all(map(is_open, verdict.hosts)):
            return replace(verdict, decision=Decision.ALLOW, commands_to_approve=())
        return verdict

    return adjust


def apply_host_rules(deny_rule: Callable[[str], str | None], allow_rule: Callable[[str], str | None]) -> Adjustment:
    """Apply the host lists of commands to the web tools, too; both functions return the rule that matches a host."""

    def adjust(verdict: Verdict, action: Action) -> Verdict:
        if action.effect != "web" or not verdict.hosts:
            return verdict
        for host in verdict.hosts:
            if denied := deny_rule(host):
                reason = f"{host} is denied by the rule {denied} of deny_net"
                return replace(
                    verdict, decision=Decision.BLOCK, reasons=(reason,), rule="deny-net", commands_to_approve=()
                )
        if all(map(allow_rule, verdict.hosts)):
            return replace(verdict, decision=Decision.ALLOW, commands_to_approve=())
        return verdict

    return adjust


def always_ask(reason: str, rule: str) -> Adjustment:
    """Require approval for every command."""

    def adjust(verdict: Verdict, action: Action) -> Verdict:
        if action.effect != "execute" or verdict.decision is not Decision.ALLOW:
            return verdict
        commands = verdict.commands
        return replace(verdict, decision=Decision.ASK, reasons=(reason,), rule=rule, commands_to_approve=commands)

    return adjust


def block_secret_leaks(redactor: Redactor) -> Adjustment:
    """Block web requests and external calls that contain a known key, and searches that contain anything like one.

    A page can trick a model into writing a key into a URL or a query.
    """

    def adjust(verdict: Verdict, action: Action) -> Verdict:
        if action.effect in ("web", "external") and (reason := _leak_reason(action, redactor)):
            return Verdict(decision=Decision.BLOCK, reasons=(reason,), rule="key-leaves")
        return verdict

    return adjust


def _leak_reason(action: Action, redactor: Redactor) -> str | None:
    for text in {action.subject, unquote(action.subject), unquote(unquote(action.subject))}:
        if redactor.mask_known(text) != text:
            return KNOWN_SECRET
    # A URL may contain credentials or a signature for its own host.
    if action.effect == "web" and not action.url and redactor.redact(action.subject) != action.subject:
        return LIKELY_SECRET
    return None
