"""Permission for an action: the verdict, the approval it needs, and the verdict again after the answer."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from tooling.approvals.script_content import script_digests
from tooling.contract.action import (
    REVIEWER,
    USER,
    VERDICT,
    Action,
    Adjustment,
    ApprovalAnswer,
    Approver,
    Decision,
    Judge,
    Verdict,
)
from tooling.contract.context import ExecCtx
from tooling.contract.interceptor import Interceptor, PendingCall
from tooling.contract.result import REFUSED, CallStatus, ToolResult, error_result

# Reading, asking and taking notes need no approval unless the judge says so.
_NEEDS_APPROVAL = ("write", "execute", "web", "remember", "forget", "external")
ALWAYS_ASKS = "{tool} always needs approval"
MAY_NOT_ASK = "It needs approval, and nobody is asked for this call."
SCRIPT_CHANGED = "a file that it runs has changed since it was approved"
# Ends the message about a blocked call; the user is not told this.
TO_THE_MODEL = " Do not try it in another form."
SCRIPT_KEEPS_CHANGING = "Not run: a file that it runs changed again each time it was approved."
_MAX_QUESTIONS = 3
EDITED_COMMAND = "The user changed the command to: {command}"


class PermissionInterceptor(Interceptor):
    """Judges an action and asks the approver if needed; also for further actions in the middle of a call.

    `ready` is awaited before anything that writes or runs is approved: the sandbox must be ready by then.
    `allow_host` is called with the hosts of an approved command, which the user has seen.
    """

    def __init__(
        self,
        judge: Judge,
        approver: Approver,
        *,
        adjustments: Sequence[Adjustment] = (),
        ready: Callable[[], Awaitable[None]] | None = None,
        allow_host: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._judge = judge
        self._adjustments = tuple(adjustments)
        self._approver = approver
        self._ready = ready
        self._allow_host = allow_host

    def verdict(self, action: Action, ctx: ExecCtx, *, always_asks: bool = False) -> Verdict:
        """Return the judge's verdict after all adjustments; an error while judging means asking."""
        try:
            verdict = self._judge.judge(action, ctx)
            for adjust in self._adjustments:
                verdict = adjust(verdict, action)
        except Exception as error:  # noqa: BLE001 (the edge: doubt while judging means asking)
            problem = f"it could not be judged ({type(error).__name__}: {error})"
            verdict = Verdict(decision=Decision.ASK, reasons=(problem,), rule="judge-failed")
        if always_asks and verdict.decision is Decision.ALLOW:
            reason = ALWAYS_ASKS.format(tool=action.tool)
            return Verdict(decision=Decision.ASK, reasons=(reason,), rule="requires-approval")
        return verdict

    async def authorize(
        self, action: Action, verdict: Verdict, ctx: ExecCtx, *, always_asks: bool = False
    ) -> ToolResult | ApprovalAnswer | None:
        """Return a refusal, the approval, or None if none is needed."""
        if verdict.decision is Decision.BLOCK:
            return blocked_result(verdict)
        if verdict.decision is Decision.ASK and not ctx.may_ask:
            return error_result(MAY_NOT_ASK, exit_code=REFUSED, status="denied", rule=verdict.rule)
        if verdict.decision is Decision.ALLOW and action.effect not in _NEEDS_APPROVAL:
            return None
        if self._ready is not None and action.effect not in ("web", "external"):
            await self._ready()
        for _ in range(_MAX_QUESTIONS):
            approved = script_digests(verdict.scripts) if verdict.decision is Decision.ASK else None
            answer = await self._approver.approve(action, verdict, ctx)
            if answer.decision != "allow":
                break
            if answer.by == VERDICT:
                # No user was asked, so no time has passed.
                return answer
            # The user may take long to answer: the action may mean something else by now.
            again = self.verdict(action, ctx, always_asks=always_asks)
            if again.decision > verdict.decision:
                return blocked_result(again)
            if approved is None or script_digests(again.scripts) == approved:
                return answer
            verdict = replace(again, decision=Decision.ASK, reasons=(*again.reasons, SCRIPT_CHANGED))
        else:
            return error_result(SCRIPT_KEEPS_CHANGING, exit_code=REFUSED, status="denied", rule=verdict.rule)
        refused: CallStatus = "denied" if answer.is_failure else "error"
        status: CallStatus = "deferred" if answer.decision == "defer" else refused
        message = _denial_message(answer, verdict)
        return error_result(message, exit_code=REFUSED, status=status, rule=answer.rule or verdict.rule)

    async def refusal(self, action: Action, ctx: ExecCtx) -> str | None:
        """Return why a further action of a call is refused, as a message for the model, or None."""
        answer = await self.authorize(action, self.verdict(action, ctx), ctx)
        return answer.content if isinstance(answer, ToolResult) else None

    async def before(self, call: PendingCall) -> ToolResult | None:
        """Judge the call, ask for approval if needed, and apply the user's edit of the command."""
        always_asks = call.tool.spec.requires_approval
        call.verdict = _with_wishes(self.verdict(call.action, call.ctx, always_asks=always_asks), call)
        answer = await self.authorize(call.action, call.verdict, call.ctx, always_asks=always_asks)
        if isinstance(answer, ToolResult):
            return answer
        call.approval = answer
        if answer is not None and answer.command is not None:
            call.params = call.tool.with_subject(call.params, answer.command)
            call.action = call.tool.action(call.params, call.ctx)
            call.verdict = self.verdict(call.action, call.ctx, always_asks=always_asks)
            if call.verdict.decision is Decision.BLOCK:
                return blocked_result(call.verdict)
        if answer is not None and answer.by == USER and self._allow_host is not None and call.action.effect != "web":
            for host in call.verdict.hosts:
                await self._allow_host(host)
        return None

    async def after(self, call: PendingCall, result: ToolResult) -> ToolResult:
        """Tell the model if the user edited the command."""
        if call.approval is not None and call.approval.by not in (USER, REVIEWER):
            result = replace(result, meta=replace(result.meta, allowed_by=call.approval.by))
        if call.approval is None or call.approval.command is None:
            return result
        note = EDITED_COMMAND.format(command=call.approval.command)
        return replace(result, content=f"{note}\n{result.content}")


def _with_wishes(verdict: Verdict, call: PendingCall) -> Verdict:
    """Return the verdict adjusted by earlier interceptors: ask the user, or no longer ask."""
    if verdict.decision is Decision.BLOCK:
        return verdict
    if call.must_ask:
        reasons = (*verdict.reasons, call.must_ask)
        return replace(verdict, decision=Decision.ASK, reasons=reasons, rule=verdict.rule or "hook", must_ask=True)
    return replace(verdict, approved_by=call.approved_by) if call.approved_by else verdict


def blocked_result(verdict: Verdict) -> ToolResult:
    """Return the result that reports a blocking verdict to the model."""
    reason = verdict.reason or "it is forbidden"
    if not reason.startswith("BLOCKED"):
        reason = f"BLOCKED: {reason}. This is permanent: nobody can approve it.{TO_THE_MODEL}"
    return error_result(reason, exit_code=REFUSED, status="blocked", rule=verdict.rule)


def _denial_message(answer: ApprovalAnswer, verdict: Verdict) -> str:
    verb = {"defer": "Deferred", "fail": "Denied, and the run stops here"}.get(answer.decision, "Denied")
    reason = f": {verdict.reason}" if verdict.reason else ""
    remark = f" {answer.remark}" if answer.remark else ""
    later = " It was not run; continue with what does not depend on it." if answer.decision == "defer" else ""
    by = {USER: "the user", REVIEWER: "the reviewer"}.get(answer.by, answer.by)
    return f"{verb} by {by}{reason}.{remark}{later}"
