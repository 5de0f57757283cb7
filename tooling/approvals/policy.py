"""The approval policy: rules first, then the mode, the reviewer, the user; without a user, the run's `on_approval`.

| mode      | command, host, memory note | edit in the workspace               | clear memory |
|-----------|----------------------------|-------------------------------------|--------------|
| ask       | asks                       | asks if it is the user's own folder | asks         |
| auto-edit | asks                       | allowed                             | asks         |
| never     | denied                     | allowed                             | denied       |
| yolo      | allowed                    | allowed                             | asks         |
| plan      | asks                       | refused                             | asks         |
| review    | reviewer, else asks        | as a command, if it would ask       | asks         |

A reviewer looks at everything that would be asked, also at what mode yolo allows instead. It makes a decision stricter,
never milder; only in mode review it may allow what would be asked.

A manifest given for the run replaces rules and modes that allow: what is on it is allowed, everything else that would
be asked, every edit and every search of the web is asked about. A manifest that the user approves during the run adds
to the rules.

In mode plan only commands that just read are run at all. Blocked actions never reach the policy and stay blocked in
every mode. Clearing the memory is asked about every time: neither rules nor earlier answers apply to it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from tooling.approvals.manifest import Manifest, needed_for
from tooling.approvals.rule_text import (
    covers_command,
    covers_host,
    covers_tool,
    is_command_prefix,
    rule_for,
    split_digest,
    suggest_rules,
)
from tooling.approvals.script_content import script_digests
from tooling.contract.action import (
    REVIEWER,
    VERDICT,
    Action,
    ApprovalAnswer,
    Approver,
    Decision,
    Opinion,
    Reviewer,
    Scope,
    Verdict,
)
from tooling.contract.context import ExecCtx

Mode: TypeAlias = Literal["ask", "auto-edit", "never", "yolo", "plan", "review"]
OnApproval: TypeAlias = Literal["deny", "defer", "fail"]
_THIS_RUN = "this run"
_YOLO = "approval mode yolo"
_MANIFEST = "the manifest"

NO_USER_TO_ASK = "This run cannot ask for approval"
WOULD_ALLOW = "would allow it"
MODE_NEVER_ASKS = "This mode never asks for approval"
NOT_IN_MANIFEST = "The manifest of this run does not have it"
READ_ONLY = "This profile only reads: nothing may be changed, and only commands that just read are run."
PLAN_MODE = "Plan mode: nothing may be changed yet, and only commands that just read are run. Look around and propose."

# For these effects a rule names a command or host; otherwise a tool.
_SUBJECT_RULE_EFFECTS = ("execute", "web")


class PolicyApprover:
    """Approves or denies by rules and mode, and asks the user if neither decides."""

    def __init__(
        self,
        *,
        mode: Mode = "ask",
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        on_approval: OnApproval = "deny",
        user: Approver | None = None,
        reviewer: Reviewer | None = None,
        asks_for_edits: bool = False,
        limits_network: bool = True,
        only_reads: Callable[[str, Path], bool] = lambda command, cwd: False,
        save_rules: Callable[[Scope, tuple[str, ...]], None] | None = None,
        manifest: Manifest | None = None,
        on_missing: Callable[[Manifest], None] = lambda missing: None,
    ) -> None:
        self._mode = mode
        self._manifest = manifest
        self._on_missing = on_missing
        self._granted = manifest or Manifest()
        self._allow = tuple(allow) if manifest is None else (*manifest.programs, *manifest.tools)
        self._deny = tuple(deny)
        self._on_approval = on_approval
        self._user = user
        self._reviewer = reviewer
        self._asks_for_edits = asks_for_edits
        self._limits_network = limits_network
        self._only_reads = only_reads
        self._save_rules = save_rules
        # The digests of the files that an action runs, at the time it was allowed.
        self._allowed_for_run: dict[Action, Mapping[str, str]] = {}
        self._first_digests: dict[str, str] = {}
        self._ask_locks: dict[tuple[str, ...], asyncio.Lock] = {}

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        """Decide, or wait for the user's answer; an answer for the run is not asked for again."""
        answer = self.decide(action, verdict, read_only=ctx.read_only)
        if answer is not None and not self._is_reviewed(answer):
            return answer
        if action.effect != "web":
            return await self._review_and_ask(action, verdict, ctx)
        # Pages of one host may be fetched concurrently; one answer can cover them all.
        async with self._ask_locks.setdefault(verdict.commands_to_approve, asyncio.Lock()):
            answer = self.decide(action, verdict, read_only=ctx.read_only)
            if answer is not None and not self._is_reviewed(answer):
                return answer
            return await self._review_and_ask(action, verdict, ctx)

    def grant(self, manifest: Manifest) -> None:
        """Allow the permissions of an approved manifest for the rest of the run."""
        self._granted = self._granted.merge(manifest)
        self._allow = (*self._allow, *manifest.programs, *manifest.tools)

    def needs(self, action: Action, verdict: Verdict) -> Manifest:
        """Return the manifest for an action that would be asked about; empty if it would not."""
        is_asked = self._manifest is not None or self._mode not in ("never", "plan")
        can_grant = verdict.decision is not Decision.BLOCK and action.effect != "forget"
        if not (is_asked and can_grant and self._needs_approval(action, verdict)):
            return Manifest()
        if self._denied_by(action, verdict) or self._allowed_by(action, verdict):
            return Manifest()
        return needed_for(action, verdict, limits_network=self._limits_network)

    def _is_reviewed(self, answer: ApprovalAnswer) -> bool:
        return self._reviewer is not None and answer.by == _YOLO

    async def _review_and_ask(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        """Get the reviewer's opinion, then ask the user unless the opinion decides."""
        # Without a user, actions that would be asked are refused regardless of the reviewer.
        can_matter = self._user is not None or self._mode in ("review", "yolo")
        opinion = await self._reviewer.review(action, verdict, ctx) if self._reviewer and can_matter else None
        answer = self._answer_of(opinion, action)
        if answer is not None and not (verdict.must_ask and answer.decision == "allow"):
            return answer
        if self._user is None:
            refusal = self._refuse(self._on_approval, "policy", NO_USER_TO_ASK, action, verdict)
            return replace(refusal, opinion=opinion)
        return await self._ask_user(self._user, action, replace(verdict, opinion=opinion), ctx)

    def _answer_of(self, opinion: Opinion | None, action: Action) -> ApprovalAnswer | None:
        """Return the decision that follows from the reviewer's opinion; None means that the user must be asked."""
        if opinion is not None and opinion.verdict == "deny":
            return ApprovalAnswer(decision="deny", by=REVIEWER, remark=opinion.text, opinion=opinion)
        if self._manifest is not None:
            # No mode widens a manifest, whatever a reviewer thinks.
            return None
        is_agreed = opinion is not None and opinion.verdict == "allow"
        if self._mode == "yolo" and action.effect != "forget" and (opinion is None or is_agreed):
            return ApprovalAnswer(decision="allow", by=_YOLO)
        if self._mode == "review" and action.effect != "forget" and is_agreed:
            return ApprovalAnswer(decision="allow", by=REVIEWER, opinion=opinion)
        return None

    async def _ask_user(self, user: Approver, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        answer = await user.approve(action, verdict, ctx)
        can_remember = action.effect != "forget" and answer.command is None
        if answer.decision == "allow" and answer.scope != "once" and can_remember:
            return self._remember(action, verdict, answer)
        return answer

    def decide(self, action: Action, verdict: Verdict, *, read_only: bool = False) -> ApprovalAnswer | None:
        """Decide by rules and mode alone; None means that the user must be asked."""
        if verdict.decision is Decision.BLOCK:
            return ApprovalAnswer(
                decision="deny", by="the safety rules", remark="No mode allows it.", rule=verdict.rule
            )
        if denied := self._denied_by(action, verdict):
            remark = f"The rule --deny {_quoted(denied)} forbids it."
            return ApprovalAnswer(decision="deny", by="a rule", remark=remark, rule=denied)
        if read_only and (self._changes_something(action) or action.effect in ("remember", "forget")):
            return ApprovalAnswer(decision="deny", by="the profile", remark=READ_ONLY, is_failure=False)
        if self._mode == "plan" and self._changes_something(action):
            return ApprovalAnswer(decision="deny", by="approval mode plan", remark=PLAN_MODE, is_failure=False)
        if not self._needs_approval(action, verdict):
            return ApprovalAnswer(decision="allow", by=VERDICT)
        if action.effect != "forget" and (by := self._allowed_by(action, verdict)):
            return ApprovalAnswer(decision="allow", by=by, rule=action.subject if by == _THIS_RUN else "")
        if self._mode == "never":
            return self._refuse("deny", "approval mode never", MODE_NEVER_ASKS, action, verdict)
        return None

    def _refuse(self, decision: OnApproval, by: str, why: str, action: Action, verdict: Verdict) -> ApprovalAnswer:
        """Refuse, and name the flags that would actually allow the action."""
        if action.effect == "forget":
            remark = f"{why}; only the user can clear the memory, for example with `agent memory clear`."
            return ApprovalAnswer(decision=decision, by=by, remark=remark)
        if self._manifest is not None and action.changed:
            remark = f"{NOT_IN_MANIFEST}, and no manifest can grant it: {action.changed}."
            return ApprovalAnswer(decision=decision, by=_MANIFEST, remark=remark)
        if self._manifest is not None:
            self._on_missing(needed_for(action, verdict, limits_network=self._limits_network))
            return ApprovalAnswer(decision=decision, by=_MANIFEST, remark=f"{NOT_IN_MANIFEST}.")
        rules = _rules_for(action, verdict)
        # A command that is allowed but cannot reach its hosts would only fail later.
        hosts = verdict.hosts if action.effect == "execute" and self._limits_network else ()
        flags = [] if hosts and verdict.is_only_network else [f"--allow {_quoted(rule)}" for rule in rules]
        flags += [f"--allow-net {_quoted(host)}" for host in hosts]
        is_plain_edit = action.effect == "write" and verdict.decision is not Decision.ASK
        mode = " or --approval-mode auto-edit" if is_plain_edit else ""
        remark = f"{why}; {' '.join(flags)}{mode} {WOULD_ALLOW}."
        return ApprovalAnswer(decision=decision, by=by, remark=remark, rule="; ".join(rules))

    def _changes_something(self, action: Action) -> bool:
        is_command = action.effect == "execute" and action.tool == "run_command"
        if is_command:
            return not self._only_reads(action.subject, action.cwd)
        return action.effect in ("write", "execute", "external")

    def _allowed_by(self, action: Action, verdict: Verdict) -> str:
        """Return the rule or mode that allows the action without asking, or an empty string."""
        if verdict.must_ask:
            return ""
        is_yolo = self._mode == "yolo" and self._manifest is None
        # A tool that its server has changed since it was allowed counts as another tool.
        if action.changed:
            return _YOLO if is_yolo else ""
        if self._allowed_for_run.get(action) == script_digests(verdict.scripts):
            return _THIS_RUN
        if self._is_allowed(action, verdict):
            return _MANIFEST if self._manifest is not None else "a rule"
        if self._manifest is not None:
            return ""
        return verdict.approved_by or (_YOLO if is_yolo else "")

    def _remember(self, action: Action, verdict: Verdict, answer: ApprovalAnswer) -> ApprovalAnswer:
        """Apply an answer beyond this call: to the exact action for the run, or to the suggested rules permanently."""
        digests = script_digests(verdict.scripts)
        is_command = action.effect in _SUBJECT_RULE_EFFECTS
        rules = suggest_rules(verdict.commands_to_approve, digests) if is_command else (action.tool,)
        if action.effect in ("web", "external") and answer.scope == "run":
            self._allow = (*self._allow, *rules)
            return replace(answer, rule=", ".join(rules))
        if answer.scope == "run" or not rules:
            self._allowed_for_run[action] = digests
            return replace(answer, rule=action.subject, scope="run")
        self._allow = (*self._allow, *rules)
        if self._save_rules:
            self._save_rules(answer.scope, rules)
        return replace(answer, rule=", ".join(rules))

    def _needs_approval(self, action: Action, verdict: Verdict) -> bool:
        if verdict.decision is Decision.ASK:
            return True
        if self._manifest is not None:
            # A search without a URL goes to a provider that no host list names.
            return action.effect == "write" or (action.effect == "web" and not action.url)
        return action.effect == "write" and self._mode in ("ask", "review") and self._asks_for_edits

    def _denied_by(self, action: Action, verdict: Verdict) -> str:
        commands = verdict.commands or (action.subject,)
        for rule in self._deny:
            is_web, is_command = action.effect == "web", action.effect == "execute"
            if covers_tool(rule, action.tool) or any(
                (is_web and covers_host(rule, command)) or (is_command and is_command_prefix(rule, command))
                for command in commands
            ):
                return rule
        return ""

    def _is_allowed(self, action: Action, verdict: Verdict) -> bool:
        if action.effect == "write":
            is_covered = self._granted.covers_paths(action)
            if is_covered or self._manifest is not None:
                return is_covered
        if action.effect == "web" and verdict.hosts and self._granted.covers_hosts(verdict.hosts):
            return True
        if self._manifest is not None and not self._granted.covers_hosts(verdict.hosts):
            return False
        if action.effect != "execute" and any(covers_tool(rule, action.tool) for rule in self._allow):
            return True
        digests = script_digests(verdict.scripts)
        if action.effect == "execute" and action.subject.strip() in self._allow:
            return all(self._is_unchanged(command, digest) for command, digest in digests.items())
        commands = verdict.commands_to_approve
        return bool(commands) and all(
            any(self._covers(rule, command, digests.get(command, ""), action) for rule in self._allow)
            for command in commands
        )

    def _covers(self, rule: str, command: str, digest: str, action: Action) -> bool:
        if action.effect == "web":
            return covers_host(rule, command)
        if action.effect != "execute" or not covers_command(rule, command, digest):
            return False
        return bool(split_digest(rule)[0]) or self._is_unchanged(command, digest)

    def _is_unchanged(self, command: str, digest: str) -> bool:
        """Whether the files that a command runs are unchanged since a rule without a digest first allowed it."""
        return self._first_digests.setdefault(command, digest) == digest


def _quoted(rule: str) -> str:
    import shlex

    return shlex.quote(rule)


def _rules_for(action: Action, verdict: Verdict) -> list[str]:
    rules = [rule_for(command) for command in verdict.commands_to_approve]
    if action.effect not in _SUBJECT_RULE_EFFECTS or (action.effect == "web" and not rules):
        return [action.tool]
    rules = rules or [action.subject.strip()]
    return list(dict.fromkeys(rules))
