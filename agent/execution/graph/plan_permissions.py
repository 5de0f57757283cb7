"""The permissions of a plan, decided as one: by the run's manifest, or by the user on one sheet."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from agent.execution.approvals import PendingQuestions
from agent.protocol.channel import Channel
from agent.protocol.events import MANIFEST_TOOL, ApprovalRequested, ManifestApplied
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from agent.vocabulary.plan import LEAD, PlanStep
from agent.vocabulary.step import CHECK_TOOL
from tooling.approvals.manifest import LISTS, GivenManifest, Manifest, merge_all
from tooling.approvals.policy import PolicyApprover
from tooling.contract.action import USER, Action, Decision, Verdict
from tooling.contract.context import ExecCtx
from tooling.contract.json_codec import JsonObject

JudgeCall: TypeAlias = Callable[[str, JsonObject, ExecCtx], tuple[Action, Verdict] | None]

EXCEEDED = "the plan needs more than the manifest {file} grants"
NEEDS_MORE = "{subject!r} is not in the manifest {file}"
NEEDS_SECRETS = "the run needs keys that the manifest {file} does not name"
OTHER_PLAN = "the manifest {file} is for another plan"
NO_PLAN = "the manifest {file} is for one plan, and this run has none yet"
REPLACE_LINES = "change these lines of {file}:\n{lines}"
ANY_PLAN = "remove its line `plan` to use it for any task"
DECLINED = "the permissions of the plan were declined, nothing of it was run"
REASON = "its steps need this; one answer covers the whole plan"
# A single need is asked about when it arises, with the exact command or diff.
_MIN_NEEDS = 2


class ManifestExceeded(AgentError):
    """A run needs more than its manifest grants; the hint has the difference."""

    exit_code = exit_codes.APPROVAL


class PlanDeclined(AgentError):
    """The user declined the sheet of a plan."""

    exit_code = exit_codes.APPROVAL


class PlanPermissions:
    """Checks the steps of a plan before they start.

    Without a `user` nothing can be asked; a `given` manifest is the only source of grants.
    """

    def __init__(
        self,
        *,
        judge_call: JudgeCall,
        policy: PolicyApprover,
        ctx_of: Callable[[str], ExecCtx],
        channel: Channel,
        allow_host: Callable[[str], Awaitable[None]],
        user: PendingQuestions | None = None,
        given: GivenManifest | None = None,
    ) -> None:
        self._judge_call = judge_call
        self._policy = policy
        self._ctx_of = ctx_of
        self._channel = channel
        self._allow_host = allow_host
        self._user = user
        self._given = given
        self._lock = asyncio.Lock()
        self._sheets = 0
        # Missing permissions of the run's manifest.
        self.missing = Manifest()
        # Set when all steps of a plan are known.
        self.is_complete = asyncio.Event()

    def needs_of(self, step: PlanStep, policy: PolicyApprover | None = None) -> Manifest:
        """Return the permissions that a step needs and lacks, as far as known beforehand."""
        policy, ctx = policy or self._policy, self._ctx_of(step.id)
        calls = [(step.tool, step.args)] if step.type == "tool" else []
        calls += [(CHECK_TOOL, {"command": step.verify})] if step.verify else []
        judged = [found for name, args in calls if (found := self._judge_call(name, args, ctx))]
        if step.type == "task":
            edits = (
                Action(tool="write_file", effect="write", subject=path, cwd=ctx.working_dir) for path in step.writes
            )
            judged += [(edit, Verdict(decision=Decision.ALLOW)) for edit in edits]
        return merge_all(policy.needs(action, verdict) for action, verdict in judged)

    def sheet(self, steps: Sequence[PlanStep]) -> Manifest:
        """Return the known needs of a plan, regardless of rules and modes."""
        nothing = PolicyApprover(manifest=Manifest())
        needs = merge_all(self.needs_of(step, nothing) for step in steps)
        return replace(needs, plan=_hash_of(steps))

    def check(self, steps: Sequence[PlanStep]) -> None:
        """Raise ManifestExceeded if a complete plan differs from the manifest's, or needs more than it grants."""
        if self._given is None:
            return
        granted, file = self._given.manifest, self._given.path
        if granted.plan and granted.plan != (found := _hash_of(steps)):
            self.missing = Manifest(plan=found)
            raise ManifestExceeded(OTHER_PLAN.format(file=file), self.hint)
        if self._user is None:
            self._refuse(merge_all(map(self.needs_of, steps)), EXCEEDED.format(file=file))

    def check_led(self) -> None:
        """Raise ManifestExceeded if the manifest is for one plan, and a lead works on the request."""
        if self._given and self._given.manifest.plan:
            file = self._given.path
            raise ManifestExceeded(NO_PLAN.format(file=file), ANY_PLAN)

    def note_missing(self, needs: Manifest) -> None:
        """Record the needs of a refused call."""
        self.missing = self.missing.merge(needs)

    @property
    def hint(self) -> str:
        """The changes of the run's manifest that would grant the missing permissions; empty if none are missing."""
        if self._given is None or self.missing == Manifest():
            return ""
        from agent.planning.manifest_file import change_for

        return REPLACE_LINES.format(file=self._given.path, lines=change_for(self._given.manifest, self.missing))

    def refusal_of(self, subject: str) -> str:
        """Return the reason why a call ends the run; empty without a manifest."""
        return NEEDS_MORE.format(subject=subject, file=self._given.path) if self._given else ""

    def check_secrets(self, names: Sequence[str]) -> None:
        """Raise ManifestExceeded if the manifest does not list a required key."""
        if self._given:
            missing = self._given.manifest.missing(Manifest(secrets=tuple(names)))
            self._refuse(missing, NEEDS_SECRETS.format(file=self._given.path))

    def must_decide(self, step: PlanStep) -> bool:
        """Whether a step must wait for a decision: on the whole plan, or on the step's needs."""
        is_bound = self._given is not None and bool(self._given.manifest.plan) and not self.is_complete.is_set()
        is_watched = (self._user is not None or self._given is not None) and step.id != LEAD
        return is_watched and (is_bound or not self.needs_of(step).is_empty)

    async def decide(self, step: PlanStep, unfinished: Callable[[], Sequence[PlanStep]]) -> None:
        """Wait until a step may start; a sheet covers it and all steps that have not ended.

        Raises ManifestExceeded, or PlanDeclined.
        """
        if self._given and self._user is None:
            if self._given.manifest.plan:
                await self.is_complete.wait()
            self._refuse(self.needs_of(step), EXCEEDED.format(file=self._given.path))
        elif self._user:
            await self.is_complete.wait()
            async with self._lock:
                others = [other for other in unfinished() if other.id not in (step.id, LEAD)]
                await self._ask(self._user, [step, *others])

    async def _ask(self, user: PendingQuestions, steps: Sequence[PlanStep]) -> None:
        sheet = merge_all(map(self.needs_of, steps))
        # Another step of the same plan may have asked meanwhile.
        if self.needs_of(steps[0]).is_empty or sum(len(getattr(sheet, name)) for name in LISTS) < _MIN_NEEDS:
            return
        from agent.planning.manifest_file import ManifestError, parse_manifest, toml_manifest

        reason = REASON
        while True:
            self._sheets += 1
            answer = await user.request(
                ApprovalRequested(
                    approval_id=f"a-manifest-{self._sheets}",
                    command=toml_manifest(sheet, is_commented=False),
                    cwd=str(self._ctx_of(LEAD).working_dir),
                    reason=reason,
                    rule="",
                    tool=MANIFEST_TOOL,
                )
            )
            if answer.decision != "allow":
                raise PlanDeclined(DECLINED, answer.remark)
            if answer.command is None:
                break
            try:
                sheet = parse_manifest(answer.command, name="manifest.toml")
                break
            except ManifestError as problem:
                reason = problem.message
        await self._grant(replace(sheet, plan=_hash_of(steps)))

    async def _grant(self, sheet: Manifest) -> None:
        await self._channel.publish(ManifestApplied(by=USER, manifest=sheet))
        self._policy.grant(sheet)
        for host in sheet.hosts:
            await self._allow_host(host)

    def _refuse(self, missing: Manifest, message: str) -> None:
        if not missing.is_empty:
            self.note_missing(missing)
            raise ManifestExceeded(message, self.hint)


def _hash_of(steps: Sequence[PlanStep]) -> str:
    from agent.planning.plan_text import plan_hash

    return plan_hash(steps)
