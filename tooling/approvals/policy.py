"""Who decides: rules first, then the mode, then the person; without a person, the run's choice.

| mode      | a command or host, a note to remember   | an edit inside the workspace            | forgetting |
|-----------|-----------------------------------------|-----------------------------------------|------------|
| ask       | the person                              | the person, in the user's own folder    | the person |
| auto-edit | the person                              | runs                                    | the person |
| never     | denied                                  | runs                                    | denied     |
| yolo      | runs                                    | runs                                    | the person |

What the judge blocks never comes here and stays blocked in every mode. On forgetting a person decides each time: no
rule and no earlier answer holds for it.
"""

import asyncio
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from tooling.approvals.rule_text import covers_command, covers_host, is_command_prefix, rule_for, suggest_rules
from tooling.contract.action import Action, ApprovalAnswer, Approver, Decision, Scope, Verdict
from tooling.contract.context import ExecCtx

Mode: TypeAlias = Literal["ask", "auto-edit", "never", "yolo"]
OnApproval: TypeAlias = Literal["deny", "defer", "fail"]
_THIS_RUN = "this run"

# Rules for these are about a command or a host, for all others about the tool as a whole.
_SUBJECT_RULE_EFFECTS = ("execute", "web")


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
        self._user = person
        self._asks_for_edits = asks_for_edits
        self._save_rules = keep_rules
        self._allowed_for_run: set[Action] = set()
        self._ask_locks: dict[tuple[str, ...], asyncio.Lock] = {}

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        """Decide, or wait for the person; what was approved for the run is not asked again."""
        answer = self.decide(action, verdict)
        if answer is not None:
            return answer
        if self._user is None:
            return _refusal(self._on_approval, "policy", "Nobody can be asked in this run", action, verdict)
        if action.effect != "web":
            return await self._ask_user(self._user, action, verdict, ctx)
        # Pages of one host are fetched side by side; the answer for the first may be one for all.
        async with self._ask_locks.setdefault(verdict.commands_to_approve, asyncio.Lock()):
            return self.decide(action, verdict) or await self._ask_user(self._user, action, verdict, ctx)

    async def _ask_user(self, person: Approver, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        answer = await person.approve(action, verdict, ctx)
        may_last = action.effect != "forget" and answer.command is None
        if answer.decision == "allow" and answer.scope != "once" and may_last:
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
        if action.effect != "forget" and (by := self._allowed_by(action, verdict)):
            return ApprovalAnswer(decision="allow", by=by, rule=action.subject if by == _THIS_RUN else "")
        if self._mode == "never":
            return _refusal("deny", "approval mode never", "Nothing is asked in this mode", action, verdict)
        return None

    def _allowed_by(self, action: Action, verdict: Verdict) -> str:
        """Return what allows an action without asking anybody, or nothing."""
        if action in self._allowed_for_run:
            return _THIS_RUN
        if self._is_allowed(action, verdict):
            return "a rule"
        return "approval mode yolo" if self._mode == "yolo" else ""

    def _remember(self, action: Action, verdict: Verdict, answer: ApprovalAnswer) -> ApprovalAnswer:
        """Let an answer hold for longer: the exact action for this run, the rules that were shown for good."""
        rules = suggest_rules(verdict.commands_to_approve) if action.effect in _SUBJECT_RULE_EFFECTS else (action.tool,)
        if action.effect == "web" and answer.scope == "run":
            self._allow = (*self._allow, *rules)
            return replace(answer, rule=", ".join(rules))
        if answer.scope == "run" or not rules:
            self._allowed_for_run.add(action)
            return replace(answer, rule=action.subject, scope="run")
        self._allow = (*self._allow, *rules)
        if self._save_rules:
            self._save_rules(answer.scope, rules)
        return replace(answer, rule=", ".join(rules))

    def _needs_approval(self, action: Action, verdict: Verdict) -> bool:
        if verdict.decision is Decision.ASK:
            return True
        return action.effect == "write" and self._mode == "ask" and self._asks_for_edits

    def _denied_by(self, action: Action, verdict: Verdict) -> str:
        commands = verdict.commands or (action.subject,)
        for rule in self._deny:
            if rule == action.tool or any(_matches(rule, command, action, is_command_prefix) for command in commands):
                return rule
        return ""

    def _is_allowed(self, action: Action, verdict: Verdict) -> bool:
        if action.effect == "execute" and action.subject.strip() in self._allow:
            return True
        if action.tool in self._allow and action.effect != "execute":
            return True
        asking = verdict.commands_to_approve
        return bool(asking) and all(
            any(_matches(rule, command, action, covers_command) for rule in self._allow) for command in asking
        )


def _matches(rule: str, command: str, action: Action, is_match: Callable[[str, str], bool]) -> bool:
    """Say whether a rule is about one part of an action: a command by its words, a fetch by its host."""
    if action.effect == "web":
        return covers_host(rule, command)
    return action.effect == "execute" and is_match(rule, command)


def _refusal(decision: OnApproval, by: str, why: str, action: Action, verdict: Verdict) -> ApprovalAnswer:
    """Refuse, and name the rules that would have allowed it."""
    if action.effect == "forget":
        remark = f"{why}; only a person can, for example with `agent memory clear`."
        return ApprovalAnswer(decision=decision, by=by, remark=remark)
    rules = _rules_for(action, verdict)
    flags = " ".join(f"--allow {shlex.quote(rule)}" for rule in rules)
    mode = " or --approval-mode auto-edit" if action.effect == "write" else ""
    remark = f"{why}; {flags}{mode} would allow it."
    return ApprovalAnswer(decision=decision, by=by, remark=remark, rule="; ".join(rules))


def _rules_for(action: Action, verdict: Verdict) -> list[str]:
    rules = [rule_for(command) for command in verdict.commands_to_approve]
    if action.effect not in _SUBJECT_RULE_EFFECTS or (action.effect == "web" and not rules):
        return [action.tool]
    rules = rules or [action.subject.strip()]
    return list(dict.fromkeys(rules))
