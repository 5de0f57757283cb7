"""A step without a model: one call, whose output is the step's answer."""

from agent.execution.step.context import Conversation
from agent.execution.step.step_result import Ending
from agent.execution.step.tool_calls import CallDesk
from agent.execution.step.verification import CheckDesk
from agent.vocabulary import exit_codes
from agent.vocabulary.message import ToolCall
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import StepStatus
from agent.vocabulary.unfinished import UNKNOWN_CALL, UnfinishedStep
from tooling.contract.context import ExecCtx
from tooling.contract.result import CallStatus

_STATUS: dict[CallStatus, StepStatus] = {
    "ok": "ok",
    "error": "error",
    "denied": "blocked",
    "deferred": "blocked",
    "blocked": "blocked",
    "timeout": "timeout",
    "cancelled": "cancelled",
}
_DONE_BEFORE = "This was done before the run was cut off."


class ToolSteps:
    """Makes the one call of a step, and never again a call that may have had its effect."""

    def __init__(self, *, calls: CallDesk, checks: CheckDesk) -> None:
        self._calls = calls
        self._checks = checks

    async def run(
        self, step: PlanStep, talk: Conversation, ctx: ExecCtx, *, check_ctx: ExecCtx, before: UnfinishedStep | None
    ) -> Ending:
        """Make the call and check it, or take what came of it before the run was cut off."""
        if before and any(message.content == UNKNOWN_CALL for message in before.messages):
            ending = await self._looked_up(step, talk, check_ctx)
            if ending:
                return ending
        if before and before.facts:
            talk.facts += before.facts
            text = before.messages[-1].content if before.messages else ""
            ending = _ending(before.facts[-1].status, text)
        else:
            call = ToolCall(id=f"{step.id}.call", name=step.tool, arguments=step.args)
            result = await self._calls.call(call, talk, ctx)
            ending = _ending(result.meta.status, result.content)
        if not step.verify or ending.status != "ok":
            return ending
        return await self._checks.check(step.verify, ending, talk, check_ctx)

    async def _looked_up(self, step: PlanStep, talk: Conversation, ctx: ExecCtx) -> Ending | None:
        """Find out whether a call had its effect: only its check can tell. None when it certainly had not."""
        if not step.verify:
            return Ending(status="error", reason=UNKNOWN_CALL, exit_code=exit_codes.TOOL_FAILED)
        checked = await self._checks.check(step.verify, Ending(status="ok", text=_DONE_BEFORE), talk, ctx)
        return None if checked.verified is False else checked


def _ending(called: CallStatus, text: str) -> Ending:
    status = _STATUS[called]
    # What a failing command said is the step's output too; its summary is only the beginning.
    return Ending(status=status, text=text, exit_code=exit_codes.TOOL_FAILED if status == "error" else 0)
