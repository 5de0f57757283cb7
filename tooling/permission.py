"""May it be done: the verdict on an action, the approval it needs, and the verdict once more after the answer."""

from tooling.contract.action import Action, ApprovalAnswer, Approver, Decision, Judge, Verdict
from tooling.contract.context import ExecCtx
from tooling.contract.result import REFUSED, CallStatus, ToolResult, error_result

# Reading, asking and taking notes need no approval unless the judge says so.
_NEEDS_APPROVER = ("write", "execute", "web", "remember", "forget")


class PermissionChecker:
    """Asks the judge, and whoever decides what the judge will not; also in the middle of a call."""

    def __init__(self, judge: Judge, approver: Approver) -> None:
        self._judge = judge
        self._approver = approver

    async def authorize(self, action: Action, ctx: ExecCtx, *, always_asks: bool = False) -> ToolResult | str | None:
        """Return the refusal, the person's own command, or None to go ahead as asked."""
        verdict = self.verdict(action, ctx, always_asks=always_asks)
        if verdict.decision is Decision.BLOCK:
            return blocked_result(verdict)
        if verdict.decision is Decision.ALLOW and action.effect not in _NEEDS_APPROVER:
            return None
        answer = await self._approver.approve(action, verdict, ctx)
        if answer.decision == "allow":
            # A person may take long to answer: what was judged must still be what it was.
            again = self.verdict(action, ctx, always_asks=always_asks)
            return blocked_result(again) if again.decision > verdict.decision else answer.command
        status: CallStatus = "deferred" if answer.decision == "defer" else "denied"
        return error_result(
            _denial_message(answer, verdict), exit_code=REFUSED, status=status, rule=answer.rule or verdict.rule
        )

    async def refusal(self, action: Action, ctx: ExecCtx) -> str | None:
        """Return why a further action of a call may not be done, in words for the model, or None."""
        answer = await self.authorize(action, ctx)
        return answer.content if isinstance(answer, ToolResult) else None

    def verdict(self, action: Action, ctx: ExecCtx, *, always_asks: bool = False) -> Verdict:
        """Return the judge's verdict; doubt while judging means asking."""
        try:
            verdict = self._judge.judge(action, ctx)
        except Exception as error:  # noqa: BLE001 (the edge: doubt while judging means asking)
            problem = f"it could not be judged ({type(error).__name__}: {error})"
            verdict = Verdict(decision=Decision.ASK, reasons=(problem,), rule="judge-failed")
        if always_asks and verdict.decision is Decision.ALLOW:
            reason = f"{action.tool} always needs approval"
            return Verdict(decision=Decision.ASK, reasons=(reason,), rule="requires-approval")
        return verdict


def blocked_result(verdict: Verdict) -> ToolResult:
    """Return the result that tells a model of a blocking verdict."""
    reason = verdict.reason or "it is forbidden"
    if not reason.startswith("BLOCKED"):
        reason = f"BLOCKED: {reason}. This is permanent: nobody can approve it, do not try it in another form."
    return error_result(reason, exit_code=REFUSED, status="blocked", rule=verdict.rule)


def _denial_message(answer: ApprovalAnswer, verdict: Verdict) -> str:
    verb = {"defer": "Deferred", "fail": "Denied, and the run stops here"}.get(answer.decision, "Denied")
    reason = f": {verdict.reason}" if verdict.reason else ""
    remark = f" {answer.remark}" if answer.remark else ""
    later = " It was not run; go on with what does not depend on it." if answer.decision == "defer" else ""
    return f"{verb} by {answer.by}{reason}.{remark}{later}"
