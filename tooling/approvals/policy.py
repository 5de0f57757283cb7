"""Who decides: rules first, then the mode, then the person; without a person, the run's choice.

| mode      | a command that asks   | an edit inside the workspace            |
|-----------|-----------------------|-----------------------------------------|
| ask       | the person            | the person, in the user's own folder    |
| auto-edit | the person            | runs                                    |
| never     | denied                | runs                                    |
| yolo      | runs                  | runs                                    |

What the judge blocks never comes here and stays blocked in every mode.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from tooling.approvals.rule_text import covers, names, offered, rule_for
from tooling.contract.action import Action, ApprovalAnswer, Approver, Decision, Scope, Verdict
from tooling.contract.context import ExecCtx

Mode: TypeAlias = Literal["ask", "auto-edit", "never", "yolo"]
OnApproval: TypeAlias = Literal["deny", "defer", "fail"]


class PolicyApprover:
    """Decides by rules and mode where it can, and asks the person where it must."""

    def __init__(
        self,
        *,
        mode: Mode = "ask",
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        on_approval: OnApproval = "deny",
        person: Approver | None = None,
        asks_for_edits: bool = False,
        keep_rules: Callable[[Scope, tuple[str, ...]], None] | None = None,
    ) -> None:
        self._mode = mode
        self._allow = tuple(allow)
        self._deny = tuple(deny)
        self._on_approval = on_approval
        self._person = person
        self._asks_for_edits = asks_for_edits
        self._keep_rules = keep_rules
        self._remembered: set[Action] = set()

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        """Decide, or wait for the person; what was approved for the run is not asked again."""
        answer = self.decide(action, verdict)
        if answer is not None:
            return answer
        if self._person is None:
            return _refusal(self._on_approval, "policy", "Nobody can be asked in this run", action, verdict)
        answer = await self._person.approve(action, verdict, ctx)
        if answer.decision == "allow" and answer.scope != "once" and answer.command is None:
            return self._remember(action, verdict, answer)
        return answer

    def decide(self, action: Action, verdict: Verdict) -> ApprovalAnswer | None:
        """Return the decision that needs nobody, or None when a person must be asked."""
        if verdict.decision is Decision.BLOCK:
            return ApprovalAnswer(
                decision="deny", by="the safety rules", remark="No mode allows it.", rule=verdict.rule
            )
        if denied := self._denied_by(action, verdict):
            remark = f"The rule --deny {shlex.quote(denied)} forbids it."
            return ApprovalAnswer(decision="deny", by="a rule", remark=remark, rule=denied)
        if not self._needs_approval(action, verdict):
            return ApprovalAnswer(decision="allow", by="the verdict")
        if action in self._remembered:
            return ApprovalAnswer(decision="allow", by="this run", rule=action.subject)
        if self._is_allowed(action, verdict):
            return ApprovalAnswer(decision="allow", by="a rule")
        if self._mode == "yolo":
            return ApprovalAnswer(decision="allow", by="approval mode yolo")
        if self._mode == "never":
            return _refusal("deny", "approval mode never", "Nothing is asked in this mode", action, verdict)
        return None

    def _remember(self, action: Action, verdict: Verdict, answer: ApprovalAnswer) -> ApprovalAnswer:
        """Let an answer hold for longer: the exact action for this run, the rules that were shown for good."""
        rules = offered(verdict.asking) if action.effect == "execute" else (action.tool,)
        if answer.scope == "run" or not rules:
            self._remembered.add(action)
            return replace(answer, rule=action.subject, scope="run")
        self._allow = (*self._allow, *rules)
        if self._keep_rules:
            self._keep_rules(answer.scope, rules)
        return replace(answer, rule=", ".join(rules))

    def _needs_approval(self, action: Action, verdict: Verdict) -> bool:
        if verdict.decision is Decision.ASK:
            return True
        return action.effect == "write" and self._mode == "ask" and self._asks_for_edits

    def _denied_by(self, action: Action, verdict: Verdict) -> str:
        commands = verdict.commands or (action.subject,)
        for rule in self._deny:
            if rule == action.tool or (
                action.effect == "execute" and any(names(rule, command) for command in commands)
            ):
                return rule
        return ""

    def _is_allowed(self, action: Action, verdict: Verdict) -> bool:
        if action.effect != "execute":
            return action.tool in self._allow
        if action.subject.strip() in self._allow:
            return True
        asking = verdict.asking
        return bool(asking) and all(any(covers(rule, command) for rule in self._allow) for command in asking)


def _refusal(decision: OnApproval, by: str, why: str, action: Action, verdict: Verdict) -> ApprovalAnswer:
    """Refuse, and name the rules that would have allowed it."""
    rules = _rules_for(action, verdict)
    flags = " ".join(f"--allow {shlex.quote(rule)}" for rule in rules)
    mode = " or --approval-mode auto-edit" if action.effect == "write" else ""
    remark = f"{why}; {flags}{mode} would allow it."
    return ApprovalAnswer(decision=decision, by=by, remark=remark, rule="; ".join(rules))


def _rules_for(action: Action, verdict: Verdict) -> list[str]:
    if action.effect != "execute":
        return [action.tool]
    rules = [rule_for(command) for command in verdict.asking] or [action.subject.strip()]
    return list(dict.fromkeys(rules))
