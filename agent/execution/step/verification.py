"""Verification of steps by their check commands, and steps that are a single tool call."""

from dataclasses import replace

from agent.execution.step.context import Conversation
from agent.execution.step.step_result import StepResult
from agent.execution.step.tool_calls import ToolCallRunner
from agent.protocol.channel import Channel
from agent.protocol.events import MessageAdded
from agent.vocabulary import exit_codes
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import CHECK_TOOL, Check
from agent.vocabulary.unfinished import UNKNOWN_CALL, UnfinishedStep
from tooling.contract.context import ExecCtx
from tooling.contract.result import CallStatus

# How often a failed check is reported to the model for another try.
MAX_CHECKS = 2
_REFUSED = frozenset({"denied", "deferred", "blocked"})


class Verifier:
    """Runs check commands like all others: same judge, same approvals, same sandbox."""

    def __init__(self, *, calls: ToolCallRunner, channel: Channel) -> None:
        self._calls = calls
        self._channel = channel

    async def check(self, command: str, result: StepResult, conversation: Conversation, ctx: ExecCtx) -> StepResult:
        """Run the check and return the updated result of the step."""
        call = ToolCall(
            id=f"{ctx.step_id}.check.{len(conversation.checks) + 1}", name=CHECK_TOOL, arguments={"command": command}
        )
        call_result = await self._calls.call(call, conversation, ctx)
        if call_result.meta.status in _REFUSED or not ctx.may_use(CHECK_TOOL):
            return replace(result, status="blocked", reason=f"The check could not be run. {call_result.content}")
        conversation.checks.append(Check(command=command, exit_code=call_result.exit_code, output=call_result.content))
        if call_result.is_ok:
            # Earlier failures no longer matter.
            return replace(result, status="ok", exit_code=0, verified=True)
        reason = f"The check `{command}` failed. {call_result.content}"
        return replace(result, status="error", reason=reason, exit_code=exit_codes.FAILED, verified=False)

    async def report_failure(self, conversation: Conversation, ctx: ExecCtx) -> None:
        """Tell the model about the failed check."""
        check = conversation.checks[-1]
        text = (
            f"The work was checked with `{check.command}`, and the check failed:\n{check.output}\n"
            "Mend what is wrong, then reply with the result as before."
        )
        conversation.messages.append(Message(role="user", content=text))
        event = MessageAdded(role="user", content=text)
        await self._channel.publish(event, step_id=ctx.step_id, attempt=ctx.attempt)


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


class ToolStepRunner:
    """Runs a `tool` step; never repeats a call that may have had its effect."""

    def __init__(self, *, calls: ToolCallRunner, verifier: Verifier) -> None:
        self._calls = calls
        self._verifier = verifier

    async def run(
        self,
        step: PlanStep,
        conversation: Conversation,
        ctx: ExecCtx,
        *,
        check_ctx: ExecCtx,
        unfinished: UnfinishedStep | None,
    ) -> StepResult:
        """Make the call and check it, or reuse its result from before the interruption."""
        if unfinished and any(message.content == UNKNOWN_CALL for message in unfinished.messages):
            result = await self._check_unknown_call(step, conversation, check_ctx)
            if result:
                return result
        if unfinished and unfinished.facts:
            conversation.facts += unfinished.facts
            text = unfinished.messages[-1].content if unfinished.messages else ""
            result = _step_result(unfinished.facts[-1].status, text)
        else:
            call = ToolCall(id=f"{step.id}.call", name=step.tool, arguments=step.args)
            call_result = await self._calls.call(call, conversation, ctx)
            result = _step_result(call_result.meta.status, call_result.content)
        if not step.verify or result.status != "ok":
            return result
        return await self._verifier.check(step.verify, result, conversation, check_ctx)

    async def _check_unknown_call(self, step: PlanStep, conversation: Conversation, ctx: ExecCtx) -> StepResult | None:
        """Find out from the check whether a call had its effect; return None if it did not."""
        if not step.verify:
            return StepResult(status="error", reason=UNKNOWN_CALL, exit_code=exit_codes.TOOL_FAILED)
        checked = await self._verifier.check(step.verify, StepResult(status="ok", text=_DONE_BEFORE), conversation, ctx)
        return None if checked.verified is False else checked


def _step_result(called: CallStatus, text: str) -> StepResult:
    status = _STATUS[called]
    # The output of a failed command is the step's output too; the summary is only its beginning.
    return StepResult(status=status, text=text, exit_code=exit_codes.TOOL_FAILED if status == "error" else 0)
